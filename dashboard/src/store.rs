//! The store of a request, with the records in the form that pages show.
//!
//! Invariant: pages reach what an account owns through [`Account`] only, which exists for the account
//! of a [`CurrentUser`], and what operators may do through [`Operator`] only, which exists for an
//! operator.

pub(crate) mod account;
pub(crate) mod entry;
pub(crate) mod operator;
pub(crate) mod templates;

use std::ops::Deref;

use platen_component::database::{Database, DatabaseError};

pub(crate) use platen_statements::{CurrentUser, sessions::Lifetimes};

use crate::{clock::Timestamp, pages::profile::Session};
use account::Account;
use operator::Operator;

/// A failed statement, or stored data that does not match the schema.
pub(crate) type StoreError = DatabaseError;

/// The store of one request.
pub(crate) struct Store(platen_statements::Store<Database>);

impl Deref for Store {
    type Target = platen_statements::Store<Database>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Store {
    pub(crate) async fn open(now: i64) -> Result<Self, StoreError> {
        Ok(Self(platen_statements::Store::new(Database::open().await?, now)))
    }

    /// What the user's account owns; `None` for a user without an account.
    pub(crate) fn account<'s>(&'s self, user: &'s CurrentUser) -> Option<Account<'s>> {
        self.0.account(user).map(Account)
    }

    /// What operators may do; `None` for other users.
    pub(crate) fn operator<'s>(&'s self, user: &'s CurrentUser) -> Option<Operator<'s>> {
        self.0.operator(user).map(|operator| Operator { operator, user: &user.user })
    }

    /// The user's sessions, the last used first.
    pub(crate) async fn sessions(
        &self,
        user: &CurrentUser,
        lifetimes: Lifetimes,
    ) -> Result<Vec<Session>, StoreError> {
        let sessions = self.0.sessions(user, lifetimes).await?.into_iter();
        let page = sessions.map(|session| Session {
            is_current: session.id == user.session,
            id: session.id.to_string(),
            created: Timestamp(session.created_at.0),
            last_seen: Timestamp(session.seen_at.0),
            address: session.address,
            user_agent: session.agent,
        });
        Ok(page.collect())
    }
}
