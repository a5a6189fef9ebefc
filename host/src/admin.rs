//! What an operator does to the database: accounts, keys, templates, invites.
//!
//! Invariant: each change is one statement, so that none is ever half done, and is written down by
//! another after it; the schema of [`platen_shared::schema`] is known to be there. Left to others: flags and printing
//! ([`crate::cli`]).

pub(crate) mod accounts;
pub(crate) mod invites;
pub(crate) mod keys;
pub(crate) mod templates;

use std::time::{SystemTime, UNIX_EPOCH};

use platen_shared::{id::AccountId, name::InvalidName, template_record::BadMarkup};
use rand::{TryRngCore as _, rngs::OsRng};

use crate::db::{Connection, DbError, Row, Value};

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
    #[error(transparent)]
    BadName(#[from] InvalidName),
    /// Not a template.
    #[error(transparent)]
    BadTemplate(#[from] BadMarkup),
    /// Somebody who is in another account.
    #[error("{0} belongs to another account already")]
    OtherAccount(String),
    /// An invite that says neither where nor whom.
    #[error(
        "say where: --account NAME or --operator (without either, it is for somebody who is there already)"
    )]
    InviteWhere,
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

/// Writes down who did what, beside what people do in the dashboard. After the change: a command
/// that fails here has been carried out.
async fn audit(
    connection: &Connection,
    account: Option<&AccountId>,
    action: &str,
    subject: &str,
) -> Result<(), AdminError> {
    let account = Value::from(account.map(|account| account.as_str().to_owned()));
    let sql = "INSERT INTO audit (at, actor, account_id, action, subject) \
        VALUES (?1, 'command line', ?2, ?3, ?4) RETURNING id";
    connection.query(sql, vec![now().into(), account, action.into(), subject.into()]).await?;
    Ok(())
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(since).unwrap_or(i64::MAX)
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

    fn optional_text(&mut self) -> Result<Option<String>, AdminError> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(AdminError::Unexpected),
        }
    }

    fn flag(&mut self) -> Result<bool, AdminError> {
        Ok(self.number()? != 0)
    }
}
