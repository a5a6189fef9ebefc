//! API keys.

use askama::Template;
use platen_statements::keys::Key;

use super::Layout;
use crate::form::Field;

/// Lifetime of the key that “Render” uses.
pub(crate) const RENDER_KEY_SECONDS: i64 = 60;

/// A key just created, shown once with an example.
#[derive(Debug, Clone)]
pub(crate) struct NewKey {
    pub(crate) name: String,
    pub(crate) key: String,
    /// Scheme and host of the server, for the curl command.
    pub(crate) base_url: String,
}

#[derive(Debug, Template)]
#[template(path = "keys.html")]
pub(crate) struct KeysPage {
    pub(crate) layout: Layout,
    /// All keys of the account, newest first.
    pub(crate) keys: Vec<Key>,
    pub(crate) new: Option<NewKey>,
    pub(crate) name: Field,
}
