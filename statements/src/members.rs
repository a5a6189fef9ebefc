//! The people of an account: owners and other members.
//!
//! Invariant: an account with users has an owner. The statement that would take the role or the user away checks it
//! under the database's write lock, together with the rights of the user who acts. Only operators change and
//! remove operators.

use crate::{
    AccountScope, Backend, Operator, OwnerScope,
    backend::{Query as _, values},
    change::Change,
    role::{by_operator, by_owner},
    scope::Scoped,
    users::{User, select_users},
};

pub use crate::role::{MemberChange, Role};

/// `?1` is the account and `?2` another user.
macro_rules! another_owner {
    () => {
        "EXISTS (SELECT 1 FROM users o WHERE o.account_id = ?1 AND o.id <> ?2 AND o.is_owner AND o.disabled_at IS NULL)"
    };
}

const PEOPLE: Scoped = Scoped::new(select_users!("account_id = ?1"));
const SET_ROLE: Scoped = Scoped::new(concat!(
    "UPDATE users SET is_owner = ?3, last_change = ?4 WHERE account_id = ?1 AND id = ?2 AND is_owner <> ?3 AND ",
    by_owner!("?5"),
    " AND (NOT operator OR ",
    by_operator!("?5"),
    ") AND (?3 OR ",
    another_owner!(),
    ") RETURNING id"
));
const REMOVE: Scoped = Scoped::new(concat!(
    "UPDATE users SET last_change = ?3 WHERE account_id = ?1 AND id = ?2 AND id IS NOT ?4 AND ",
    by_owner!("?4"),
    " AND (NOT operator OR ",
    by_operator!("?4"),
    ") AND (NOT is_owner OR ",
    another_owner!(),
    " OR (",
    by_operator!("?4"),
    " AND NOT EXISTS (SELECT 1 FROM users o WHERE o.account_id = ?1 AND o.id <> ?2))) RETURNING id"
));
const STATE: Scoped = Scoped::new(concat!(
    "SELECT is_owner, operator AND NOT ",
    by_operator!("?3"),
    ", ",
    by_owner!("?3"),
    " FROM users WHERE account_id = ?1 AND id = ?2"
));

/// Why a change was not carried out. `wanted` is the role that the user should have.
fn reason(state: Option<(Role, bool, bool)>, wanted: Option<Role>) -> MemberChange {
    match state {
        None => MemberChange::NotFound,
        // The statement was repeated, or another user has done the same.
        Some((role, ..)) if wanted == Some(role) => MemberChange::Done,
        Some((_, _, false)) => MemberChange::NotOwner,
        Some((_, true, _)) => MemberChange::Operator,
        Some(_) => MemberChange::LastOwner,
    }
}

fn role_change(change: Change, email: &str, role: Role) -> Change {
    change.subject(&format!("{email}: {}", role.word()))
}

impl<B: Backend> AccountScope<'_, B> {
    /// Its users, by address.
    pub async fn people(&self) -> Result<Vec<User>, B::Error> {
        self.all(PEOPLE, values![]).await
    }

    /// One of its users.
    pub async fn person(&self, id: &str) -> Result<Option<User>, B::Error> {
        Ok(self.people().await?.into_iter().find(|user| user.id.as_str() == id))
    }
}

impl<B: Backend> OwnerScope<'_, B> {
    /// Changes the role of a user.
    pub async fn set_role(&self, user: &User, role: Role) -> Result<MemberChange, B::Error> {
        let change = role_change(self.change("changed role"), &user.email, role);
        if self.run(SET_ROLE, values![&user.id, role.is_owner(), change, self.user]).await? {
            return Ok(MemberChange::Done);
        }
        Ok(reason(self.first(STATE, values![&user.id, self.user]).await?, Some(role)))
    }

    /// Removes a user with the user's sessions and open invites, in one statement. The user who acts is not found.
    pub async fn remove_person(&self, user: &str) -> Result<MemberChange, B::Error> {
        let change = self.change("removed user").deletes();
        if self.run(REMOVE, values![user, change, self.user]).await? {
            return Ok(MemberChange::Done);
        }
        if self.user.is_some_and(|own| own.as_str() == user) {
            return Ok(MemberChange::NotFound);
        }
        Ok(reason(self.first(STATE, values![user, self.user]).await?, None))
    }
}

impl<B: Backend> Operator<'_, B> {
    /// The users of an account, by address.
    pub async fn users(&self, account: &str) -> Result<Vec<User>, B::Error> {
        self.store.backend.all(PEOPLE.sql(), values![account]).await
    }

    /// Changes the role of a user in the user's account.
    pub async fn set_role(&self, account: &str, user: &User, role: Role) -> Result<MemberChange, B::Error> {
        let change = role_change(self.change("changed role").account(account), &user.email, role);
        let values = values![account, &user.id, role.is_owner(), change, self.user];
        if self.store.backend.run(SET_ROLE.sql(), values).await? {
            return Ok(MemberChange::Done);
        }
        let state = self.store.backend.first(STATE.sql(), values![account, &user.id, self.user]).await?;
        Ok(reason(state, Some(role)))
    }

    /// Removes a user of an account with the user's sessions and open invites, in one statement. This operator is not
    /// found.
    pub async fn remove_user(&self, account: &str, user: &str) -> Result<MemberChange, B::Error> {
        let change = self.change("removed user").account(account).deletes();
        if self.store.backend.run(REMOVE.sql(), values![account, user, change, self.user]).await? {
            return Ok(MemberChange::Done);
        }
        if self.user.is_some_and(|own| own.as_str() == user) {
            return Ok(MemberChange::NotFound);
        }
        let state = self.store.backend.first(STATE.sql(), values![account, user, self.user]).await?;
        Ok(reason(state, None))
    }
}
