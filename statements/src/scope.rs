//! The types through which statements are reached.
//!
//! Invariant: the text of a [`Scoped`] statement contains `account_id = ?1`, or inserts `account_id`
//! as its first column from `?1`. In a constant, a statement without it is a compile error. [`AccountScope`] binds its account
//! as `?1`.

use std::ops::Deref;

use platen_shared::id::{AccountId, UserId};

use crate::{
    Backend, Value,
    backend::{FromRow, Query as _},
    change::Change,
    current_user::CurrentUser,
};

/// The database at the time of a request.
#[derive(Debug)]
pub struct Store<B> {
    pub(crate) backend: B,
    pub(crate) now: i64,
}

impl<B: Backend> Store<B> {
    /// The store at a time in whole seconds since 1970 (UTC).
    pub fn new(backend: B, now: i64) -> Self {
        Self { backend, now }
    }

    /// The time of the request.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.now
    }

    /// What the user's account owns; `None` for a user without an account.
    pub fn account<'s>(&'s self, user: &'s CurrentUser) -> Option<AccountScope<'s, B>> {
        let membership = user.account.as_ref()?;
        Some(AccountScope { store: self, actor: &user.email, id: &membership.id })
    }

    /// What owners of the user's account may do; `None` for its other members, and for a user without an account.
    pub fn owner<'s>(&'s self, user: &'s CurrentUser) -> Option<OwnerScope<'s, B>> {
        let scope = self.account(user)?;
        user.is_owner().then_some(OwnerScope { scope, user: Some(&user.user) })
    }

    /// What operators may do; `None` for other users.
    pub fn operator<'s>(&'s self, user: &'s CurrentUser) -> Option<Operator<'s, B>> {
        user.is_operator().then(|| Operator { store: self, actor: &user.email, user: Some(&user.user) })
    }

    /// What operators may do, for the operator's commands, which have access to the database itself.
    /// Components are compiled without it.
    #[cfg(not(target_family = "wasm"))]
    pub fn command_line(&self) -> Operator<'_, B> {
        Operator { store: self, actor: "command line", user: None }
    }
}

/// What one account owns.
///
/// Invariant: every statement is a `Scoped` one and runs with the account's id as `?1`. In
/// a component this type exists for the account of a session only.
#[derive(Debug)]
pub struct AccountScope<'s, B> {
    // Private, so that the account's statements reach the connection through `Scoped` only.
    store: &'s Store<B>,
    actor: &'s str,
    id: &'s AccountId,
}

impl<B: Backend> AccountScope<'_, B> {
    /// The time of the request.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.store.now
    }

    /// The account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.id
    }

    /// Who acts: an e-mail address, or `command line`.
    pub(crate) fn actor(&self) -> &str {
        self.actor
    }

    pub(crate) fn change(&self, action: &str) -> Change {
        Change::new(self.store.now, self.actor, action).account(self.id.as_str())
    }

    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], B::Error> {
        self.store.backend.random()
    }

    pub(crate) async fn all<T: FromRow>(&self, sql: Scoped, values: Vec<Value>) -> Result<Vec<T>, B::Error> {
        self.store.backend.all(sql.sql(), self.bound(values)).await
    }

    pub(crate) async fn first<T: FromRow>(
        &self,
        sql: Scoped,
        values: Vec<Value>,
    ) -> Result<Option<T>, B::Error> {
        self.store.backend.first(sql.sql(), self.bound(values)).await
    }

    pub(crate) async fn exists(&self, sql: Scoped, values: Vec<Value>) -> Result<bool, B::Error> {
        self.store.backend.exists(sql.sql(), self.bound(values)).await
    }

    pub(crate) async fn run(&self, sql: Scoped, values: Vec<Value>) -> Result<bool, B::Error> {
        self.store.backend.run(sql.sql(), self.bound(values)).await
    }

    pub(crate) async fn repeat(&self, sql: Scoped, values: Vec<Value>) -> Result<(), B::Error> {
        self.store.backend.repeat(sql.sql(), self.bound(values)).await
    }

    /// The account's id, then the values of the statement, which are `?2` and up.
    fn bound(&self, values: Vec<Value>) -> Vec<Value> {
        std::iter::once(self.id.into()).chain(values).collect()
    }
}

/// What the owners of an account may do besides: take keys and templates away, and manage people.
///
/// Invariant: in a component this type exists only for a user who is an owner of the account, or an operator. Statements
/// about people check it again when they change something, because an owner may have lost the role meanwhile.
#[derive(Debug)]
pub struct OwnerScope<'s, B> {
    scope: AccountScope<'s, B>,
    /// `None` for the operator's commands.
    pub(crate) user: Option<&'s UserId>,
}

impl<'s, B> Deref for OwnerScope<'s, B> {
    type Target = AccountScope<'s, B>;

    fn deref(&self) -> &Self::Target {
        &self.scope
    }
}

/// What operators may do: accounts, users, invites, the audit log.
///
/// Invariant: in a component this type exists for an operator only. Every change writes an audit entry.
#[derive(Debug)]
pub struct Operator<'s, B> {
    pub(crate) store: &'s Store<B>,
    actor: &'s str,
    /// `None` for the operator's commands.
    pub(crate) user: Option<&'s UserId>,
}

#[cfg(not(target_family = "wasm"))]
impl<'s, B: Backend> Operator<'s, B> {
    /// What any account owns, for the operator's commands.
    #[must_use]
    pub fn account_scope(&self, account: &'s AccountId) -> OwnerScope<'s, B> {
        let scope = AccountScope { store: self.store, actor: self.actor, id: account };
        OwnerScope { scope, user: None }
    }
}

impl<B: Backend> Operator<'_, B> {
    pub(crate) fn change(&self, action: &str) -> Change {
        Change::new(self.store.now, self.actor, action)
    }
}

/// A statement of an account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scoped(&'static str);

impl Scoped {
    /// Takes a statement.
    ///
    /// # Panics
    /// When the statement is not bound to an account; in a constant this is a compile error.
    pub(crate) const fn new(sql: &'static str) -> Self {
        let reads = contains(sql, "account_id = ?1");
        let inserts = contains(sql, "INSERT INTO")
            && contains(sql, "(account_id, ")
            && (contains(sql, "VALUES (?1, ") || contains(sql, "SELECT ?1, "));
        assert!(reads || inserts, "a statement of an account must be bound to it by account_id = ?1");
        Self(sql)
    }

    /// The statement's text.
    pub(crate) const fn sql(self) -> &'static str {
        self.0
    }
}

const fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let mut start = 0;
    while start + part.len() <= text.len() {
        let mut length = 0;
        while length < part.len() && text[start + length] == part[length] {
            length += 1;
        }
        // `?10` does not count as `?1`.
        let after = start + length;
        if length == part.len() && (after == text.len() || !text[after].is_ascii_digit()) {
            return true;
        }
        start += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_bound_to_an_account_are_accepted() {
        for good in [
            "SELECT 1 FROM t WHERE account_id = ?1",
            "DELETE FROM t WHERE id = ?2 AND account_id = ?1 RETURNING id",
            "INSERT INTO t (account_id, id) VALUES (?1, ?2)",
            "INSERT INTO t (account_id, id) SELECT ?1, ?2",
        ] {
            assert_eq!(Scoped::new(good).sql(), good);
        }
        for bad in [
            "SELECT 1 FROM t WHERE id = ?1",
            "SELECT 1 FROM t WHERE account_id = ?10",
            "INSERT INTO t (id, account_id) VALUES (?1, ?2)",
            "",
        ] {
            assert!(std::panic::catch_unwind(|| Scoped::new(bad)).is_err(), "{bad}");
        }
    }
}
