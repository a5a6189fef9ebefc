//! What an operator does to the database: accounts, keys, templates.
//!
//! Invariant: each change is one statement, so that none is ever half done, and the schema of
//! [`platen_shared::schema`] is known to be there. Left to others: flags and printing
//! ([`crate::cli`]).

pub(crate) mod accounts;
pub(crate) mod keys;
pub(crate) mod templates;

use std::time::{SystemTime, UNIX_EPOCH};

use rand::{TryRngCore as _, rngs::OsRng};

use crate::db::{DbError, Row, Value};

/// Longest name of an account, key or template, in characters.
const NAME_CHARS: usize = 200;

/// Why an operator's command was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    /// No such account.
    #[error("there is no account {0:?}: see `platen account list`")]
    NoAccount(String),
    /// No such key.
    #[error("there is no key {0:?}: see `platen key list`")]
    NoKey(String),
    /// No such template.
    #[error("there is no template {0:?}: see `platen template list`")]
    NoTemplate(String),
    /// A template of another account.
    #[error("the template {0:?} belongs to another account")]
    ForeignTemplate(String),
    /// An account of that name.
    #[error("there is an account {0:?} already")]
    NameTaken(String),
    /// Not a name.
    #[error("a name has 1 to {NAME_CHARS} characters, and no control characters")]
    BadName,
    /// Not a template.
    #[error("a template is not empty and has at most {} bytes", platen_shared::limits::HTML_BYTES)]
    BadTemplate,
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness")]
    NoRandomness(#[source] rand::rand_core::OsError),
    /// The database answered with something that is not there by its schema.
    #[error("the database holds something that this platen does not understand")]
    Unexpected,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
}

fn random<const N: usize>() -> Result<[u8; N], AdminError> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(AdminError::NoRandomness)?;
    Ok(bytes)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(since).unwrap_or(i64::MAX)
}

fn check_name(name: &str) -> Result<&str, AdminError> {
    let name = name.trim();
    let good = (1..=NAME_CHARS).contains(&name.chars().count()) && !name.contains(char::is_control);
    if good { Ok(name) } else { Err(AdminError::BadName) }
}

/// Reads a row's columns one after another.
struct Columns(std::vec::IntoIter<Value>);

impl Columns {
    fn of(row: Row) -> Self {
        Self(row.into_iter())
    }

    fn text(&mut self) -> Result<String, AdminError> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(AdminError::Unexpected),
        }
    }

    fn blob(&mut self) -> Result<Vec<u8>, AdminError> {
        match self.0.next() {
            Some(Value::Blob(bytes)) => Ok(bytes),
            _ => Err(AdminError::Unexpected),
        }
    }

    fn number(&mut self) -> Result<i64, AdminError> {
        self.optional()?.ok_or(AdminError::Unexpected)
    }

    fn optional(&mut self) -> Result<Option<i64>, AdminError> {
        match self.0.next() {
            Some(Value::Integer(number)) => Ok(Some(number)),
            Some(Value::Null) => Ok(None),
            _ => Err(AdminError::Unexpected),
        }
    }

    fn flag(&mut self) -> Result<bool, AdminError> {
        Ok(self.number()? != 0)
    }
}
