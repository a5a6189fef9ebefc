//! API keys.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// How long a key for one click is good.
pub const RENDER_KEY_SECONDS: i64 = 60;

/// A key's record.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its first characters.
    pub prefix: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it was last used.
    pub last_used: Option<Timestamp>,
    /// It is refused.
    pub disabled: bool,
}

/// A key just made, and how it is used.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// The secret.
    pub key: String,
    /// Where the server is, as the browser sees it.
    pub base_url: String,
}

/// The page.
#[derive(Debug, Template)]
#[template(path = "keys.html")]
pub struct Keys {
    /// What surrounds it.
    pub layout: Layout,
    /// The keys.
    pub keys: Vec<Key>,
    /// The key that is shown this once.
    pub new: Option<NewKey>,
    /// The name of the one to make.
    pub name: Field,
}
