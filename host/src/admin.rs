//! The database of the operator's commands. The statements are those of [`platen_statements`]; here are
//! their backend, and accounts by name.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Error, Result};
use platen_shared::id::AccountId;
use platen_statements::{Backend, Operator, Outcome, Row, Store, Value, accounts::Account};
use rand::{TryRng as _, rngs::SysRng};

use crate::db::{Database, DbError};

/// The database of a command, at the time when it began.
pub(crate) struct Admin(Store<CommandBackend>);

impl Admin {
    pub(crate) fn new(database: Database) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self(Store::new(CommandBackend(database), i64::try_from(since).unwrap_or(i64::MAX)))
    }

    pub(crate) fn operator(&self) -> Operator<'_, CommandBackend> {
        self.0.command_line()
    }

    /// The time at which the command began, in whole seconds since 1970 (UTC).
    pub(crate) fn now(&self) -> i64 {
        self.0.now()
    }

    /// The account with this id or, if there is none, with this name.
    pub(crate) async fn account(&self, id_or_name: &str) -> Result<Account> {
        let account = self.operator().find_account(id_or_name).await?;
        account.with_context(|| no_account(id_or_name))
    }

    /// The id of an account that a command names; `None` if it names none.
    pub(crate) async fn account_id(&self, id_or_name: Option<&str>) -> Result<Option<AccountId>> {
        Ok(match id_or_name {
            Some(id_or_name) => Some(self.account(id_or_name).await?.id),
            None => None,
        })
    }
}

pub(crate) fn no_account(id_or_name: &str) -> String {
    format!("there is no account {id_or_name:?}: see `platen account list`")
}

/// A database with the randomness of the operating system.
pub(crate) struct CommandBackend(Database);

impl Backend for CommandBackend {
    type Error = Error;

    async fn execute(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let rows = self.0.query(sql, values.to_vec()).await?;
        Ok(rows.into_iter().map(Row::new).collect())
    }

    fn outcome(error: &Error) -> Outcome {
        error.downcast_ref().map_or(Outcome::Failed, DbError::outcome)
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn random<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        SysRng.try_fill_bytes(&mut bytes).context("the operating system provides no randomness")?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod tests;
