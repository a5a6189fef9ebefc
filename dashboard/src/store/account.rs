//! What one account owns.
//!
//! Invariant: every statement is a [`Scoped`] one and is run with the account of the session as
//! `?1`, here and nowhere else. Left to others: the statements themselves (keys, templates, usage).

use platen_component::database::{Row, Value};
use platen_shared::id::AccountId;

use super::{CurrentUser, Store, StoreError};
use crate::scoped::Scoped;

/// The account of a current_user.
pub(crate) struct Account<'s> {
    store: &'s Store,
    current_user: &'s CurrentUser,
    id: &'s AccountId,
}

impl<'s> Account<'s> {
    pub(super) fn new(store: &'s Store, current_user: &'s CurrentUser, id: &'s AccountId) -> Self {
        Self { store, current_user, id }
    }

    /// The time of this request.
    pub(super) fn now(&self) -> i64 {
        self.store.now
    }

    /// Runs a statement; `values` are `?2` and up.
    pub(super) async fn rows(
        &self,
        sql: Scoped,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<Row>, StoreError> {
        let values = std::iter::once(Value::from(self.id.as_str())).chain(values).collect();
        self.store.rows(sql.sql(), values).await
    }

    /// Runs a statement and gives its first row.
    pub(super) async fn one_row(
        &self,
        sql: Scoped,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Writes down who did what.
    pub(super) async fn audit(&self, action: &str, subject: &str) -> Result<(), StoreError> {
        self.store.audit(&self.current_user.email, Some(self.id), action, subject).await
    }
}
