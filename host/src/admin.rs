//! The operator's commands on the database: accounts, keys, templates, invites. The statements
//! are those of [`platen_statements`]; here are the errors, and accounts by name.

pub(crate) mod accounts;
pub(crate) mod invites;
pub(crate) mod keys;
pub(crate) mod templates;

use std::time::{SystemTime, UNIX_EPOCH};

use platen_shared::{name::InvalidName, template_record::BadMarkup};
use platen_statements::{Backend, DataError, Operator, Row, Store, Value};
use rand::{TryRngCore as _, rngs::OsRng};

use crate::db::{Connection, Database, DbError};

/// Why an operator's command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("there is no account {0:?}: see `platen account list`")]
    NoAccount(String),
    #[error("there is no key {0:?}: see `platen key list`")]
    NoKey(String),
    #[error("there is no template {0:?}: see `platen template list`")]
    NoTemplate(String),
    #[error("the template {0:?} belongs to another account")]
    ForeignTemplate(String),
    #[error("there is an account {0:?} already")]
    NameTaken(String),
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    #[error(transparent)]
    BadTemplate(#[from] BadMarkup),
    #[error("{0} belongs to another account already")]
    OtherAccount(String),
    #[error(
        "there is no user with this address yet: invite to an account with --account NAME, or as an operator \
         with --operator"
    )]
    NoInviteTarget,
    #[error("the operating system provides no randomness")]
    NoRandomness(#[source] rand::rand_core::OsError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Database(#[from] DbError),
}

/// The database of a command, at the time when it began.
#[derive(Debug)]
pub(crate) struct Admin(Store<CommandBackend>);

impl Admin {
    pub(crate) fn new(database: &Database) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self(Store::new(CommandBackend(database.connect()), i64::try_from(since).unwrap_or(i64::MAX)))
    }

    fn operator(&self) -> Operator<'_, CommandBackend> {
        self.0.command_line()
    }
}

/// A connection with the randomness of the operating system.
#[derive(Debug)]
pub(crate) struct CommandBackend(Connection);

impl Backend for CommandBackend {
    type Error = AdminError;

    async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, AdminError> {
        let rows = self.0.query(sql, values).await?;
        Ok(rows.into_iter().map(Row::new).collect())
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], AdminError> {
        let mut bytes = [0; N];
        OsRng.try_fill_bytes(&mut bytes).map_err(AdminError::NoRandomness)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
