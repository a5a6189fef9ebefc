//! API keys.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// Lifetime of the key that “Render” uses.
pub const RENDER_KEY_SECONDS: i64 = 60;

/// A key in the list.
#[derive(Debug, Clone)]
pub struct Key {
    /// Id for addresses of forms.
    pub id: String,
    /// Name given by the user.
    pub name: String,
    /// First characters of the secret.
    pub prefix: String,
    /// Time of creation.
    pub created: Timestamp,
    /// Time of the last request with it.
    pub last_used: Option<Timestamp>,
    /// Whether requests with it are refused.
    pub disabled: bool,
}

/// A key just created, shown once with an example.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Name given by the user.
    pub name: String,
    /// The secret.
    pub key: String,
    /// Scheme and host of the server, for the curl command.
    pub base_url: String,
}

/// The list of keys with a form for a new one.
#[derive(Debug, Template)]
#[template(path = "keys.html")]
pub struct KeysPage {
    /// Shared parts.
    pub layout: Layout,
    /// All keys of the account, newest first.
    pub keys: Vec<Key>,
    /// The key just created.
    pub new: Option<NewKey>,
    /// Name of the key to create.
    pub name: Field,
}
