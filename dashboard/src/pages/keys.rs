//! API keys.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// Lifetime of the key that “Render” uses.
pub(crate) const RENDER_KEY_SECONDS: i64 = 60;

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) created: Timestamp,
    /// Time of the last request with it.
    pub(crate) last_used: Option<Timestamp>,
    pub(crate) disabled: bool,
}

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
