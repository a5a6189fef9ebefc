//! All statements of the dashboard.
//!
//! Invariant: the connection is private to this module. A page reaches what an account owns only
//! through [`account::Account`], which exists only for the account of a [`CurrentUser`], and what
//! operators may do only through [`operator::Operator`], which exists only for an operator.

pub(crate) mod account;
pub(crate) mod entry;
pub(crate) mod keys;
pub(crate) mod operator;
pub(crate) mod person;
pub(crate) mod templates;
pub(crate) mod usage;

use platen_component::database::{Database, DatabaseError, Row, Value, text_or_null};
use platen_shared::{
    id::{AccountId, SessionId, UserId},
    token::Token,
};

use account::Account;
use operator::Operator;

/// Why a statement came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Template(#[from] platen_shared::template::DamagedTemplate),
    #[error("a stored JSON text is damaged")]
    Json(#[from] serde_json::Error),
}

/// How long sessions last, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lifetimes {
    /// Without being used.
    pub(crate) idle: i64,
    /// In all.
    pub(crate) whole: i64,
}

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub(crate) struct CurrentUser {
    pub(crate) user: UserId,
    pub(crate) email: String,
    pub(crate) session: SessionId,
    pub(crate) account: Option<Membership>,
    operator: bool,
}

/// The account somebody works in.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    id: AccountId,
    pub(crate) name: String,
    pub(crate) disabled: bool,
}

impl CurrentUser {
    pub(crate) fn is_operator(&self) -> bool {
        self.operator
    }

    pub(crate) fn works_in(&self, account: &str) -> bool {
        self.account.as_ref().is_some_and(|own| own.id.as_str() == account)
    }
}

/// A connection for one request.
pub(crate) struct Store {
    database: Database,
    now: i64,
}

const SESSION: &str = "SELECT u.id, u.email, u.operator, s.id, s.seen_at, a.id, a.name, a.disabled_at IS NOT NULL \
    FROM sessions s JOIN users u ON u.id = s.user_id LEFT JOIN accounts a ON a.id = u.account_id \
    WHERE s.hash = ?1 AND u.disabled_at IS NULL AND s.seen_at > ?2 AND s.created_at > ?3";
const SEEN: &str = "UPDATE sessions SET seen_at = ?2 WHERE hash = ?1 RETURNING id";
const AUDIT: &str =
    "INSERT INTO audit (at, actor, account_id, action, subject) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id";

/// How old the time a session was last seen may be, as a part of the time it may be idle: a write
/// for every page would be many.
const SEEN_PARTS: i64 = 60;

impl Store {
    pub(crate) async fn open(now: i64) -> Result<Self, StoreError> {
        Ok(Self { database: Database::open().await?, now })
    }

    /// Whoever holds this session's cookie.
    pub(crate) async fn current_user(
        &self,
        token: &Token,
        lifetimes: Lifetimes,
    ) -> Result<Option<CurrentUser>, StoreError> {
        let (seen_after, created_after) = (self.now - lifetimes.idle, self.now - lifetimes.whole);
        let values = vec![token.hash().into(), seen_after.into(), created_after.into()];
        let Some(row) = self.one_row(SESSION, values).await? else { return Ok(None) };
        if self.now - row.number::<i64>(4)? > lifetimes.idle / SEEN_PARTS {
            self.rows(SEEN, vec![token.hash().into(), self.now.into()]).await?;
        }
        let account = match row.optional_text(5)? {
            Some(id) => Some(Membership {
                id: AccountId::from_text(id),
                name: row.text(6)?,
                disabled: row.number(7)?,
            }),
            None => None,
        };
        Ok(Some(CurrentUser {
            user: UserId::from_text(row.text(0)?),
            email: row.text(1)?,
            operator: row.number(2)?,
            session: SessionId::from_text(row.text(3)?),
            account,
        }))
    }

    /// What the current_user's account owns.
    pub(crate) fn account<'s>(&'s self, current_user: &'s CurrentUser) -> Option<Account<'s>> {
        Some(Account::new(self, current_user, &current_user.account.as_ref()?.id))
    }

    /// What operators may do, if the current_user is one.
    pub(crate) fn operator<'s>(&'s self, current_user: &'s CurrentUser) -> Option<Operator<'s>> {
        current_user.operator.then(|| Operator::new(self, current_user))
    }

    async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        Ok(self.database.rows(sql, values).await?)
    }

    async fn one_row(&self, sql: &str, values: Vec<Value>) -> Result<Option<Row>, StoreError> {
        Ok(self.database.one_row(sql, values).await?)
    }

    async fn audit(
        &self,
        actor: &str,
        account: Option<&AccountId>,
        action: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        let account = text_or_null(account.map(AccountId::as_str));
        let values = vec![self.now.into(), actor.into(), account, action.into(), subject.into()];
        self.rows(AUDIT, values).await?;
        Ok(())
    }
}
