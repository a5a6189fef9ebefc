//! Users: who is signed in, passwords, and the users that operators manage.

use platen_shared::{
    email::Email,
    id::{AccountId, UserId},
    token::Token,
};

use crate::{
    Backend, Operator, Store, Timestamp,
    backend::{Query as _, record, values},
    change::Change,
    current_user::CurrentUser,
    role::{MemberChange, Role},
    sessions::Lifetimes,
};

record! {
    /// A user in an operator's list.
    pub struct User {
        pub id: UserId,
        pub email: String,
        pub operator: bool,
        /// The role in the account of the user.
        pub role: Role,
        pub created_at: Timestamp,
        /// The last use of any session.
        pub seen_at: Option<Timestamp>,
    }
}

record! {
    /// A user of any account, or of none.
    pub struct ListedUser {
        pub id: UserId,
        pub email: String,
        pub account: Option<AccountId>,
        pub account_name: Option<String>,
        /// The role in the account.
        pub role: Role,
        pub operator: bool,
        pub created_at: Timestamp,
        /// The last use of any session.
        pub seen_at: Option<Timestamp>,
    }
}

const CURRENT_USER: &str = "SELECT s.seen_at, u.id, u.email, u.operator, s.id, a.id, a.name, \
    a.disabled_at IS NOT NULL, a.id IS NOT u.account_id, coalesce(u.is_owner AND a.id = u.account_id, 0), a.quota, \
    coalesce((SELECT attempts FROM usage WHERE account_id = a.id AND month = strftime('%Y-%m', ?4, 'unixepoch')), 0) \
    FROM sessions s JOIN users u ON u.id = s.user_id \
    LEFT JOIN accounts a ON a.id = coalesce(CASE WHEN u.operator THEN u.visited_account_id END, u.account_id) \
    WHERE s.hash = ?1 AND u.disabled_at IS NULL AND s.seen_at > ?2 AND s.created_at > ?3";
const SEEN: &str = "UPDATE sessions SET seen_at = ?2 WHERE hash = ?1 RETURNING id";
const CREDENTIALS: &str = "SELECT id, password FROM users WHERE email = ?1 AND disabled_at IS NULL";
const SET_PASSWORD: &str = "UPDATE users SET password = ?2, last_change = ?3 WHERE id = ?1 RETURNING id";
/// Columns of [`User`].
macro_rules! select_users {
    ($condition:literal) => {
        concat!(
            "SELECT id, email, operator, is_owner, created_at, \
             (SELECT max(seen_at) FROM sessions WHERE user_id = users.id) FROM users WHERE ",
            $condition,
            " ORDER BY email"
        )
    };
}
pub(crate) use select_users;

const OPERATORS: &str = select_users!("operator");
const EVERY: &str = "SELECT u.id, u.email, u.account_id, a.name, u.is_owner, u.operator, u.created_at, \
    (SELECT max(seen_at) FROM sessions WHERE user_id = u.id) FROM users u LEFT JOIN accounts a ON a.id = u.account_id \
    WHERE ?1 IS NULL OR u.account_id = ?1 ORDER BY u.email";
const HAS_OPERATOR: &str = "SELECT 1 FROM users WHERE operator AND disabled_at IS NULL LIMIT 1";
const HAS_ACCOUNT: &str = "SELECT 1 FROM users WHERE email = ?1 AND account_id IS NOT NULL";
// The account of the operator keeps an owner, if it has other users.
const REMOVE_OPERATOR: &str = "UPDATE users SET last_change = ?3 WHERE id = ?1 AND operator AND id IS NOT ?2 AND (account_id IS NULL OR NOT is_owner \
     OR NOT EXISTS (SELECT 1 FROM users o WHERE o.account_id = users.account_id AND o.id <> ?1) \
     OR EXISTS (SELECT 1 FROM users o WHERE o.account_id = users.account_id AND o.id <> ?1 AND o.is_owner)) RETURNING id";
const IS_OPERATOR: &str = "SELECT id FROM users WHERE id = ?1 AND operator AND id IS NOT ?2";
const JOIN: &str = "UPDATE users SET visited_account_id = ?2, last_change = ?3 WHERE id = ?1 \
    AND EXISTS (SELECT 1 FROM accounts WHERE id = ?2) RETURNING id";
const LEAVE: &str = "UPDATE users SET visited_account_id = NULL, last_change = ?2 WHERE id = ?1 RETURNING id";

/// The stored time of a session's last use is renewed when it is older than this part of
/// the time that the session may be idle, because a write for every page would be many.
const SEEN_PARTS: i64 = 60;

impl<B: Backend> Store<B> {
    /// The user of the session with this cookie.
    pub async fn current_user(
        &self,
        token: &Token,
        lifetimes: Lifetimes,
    ) -> Result<Option<CurrentUser>, B::Error> {
        let (seen_after, created_after) = lifetimes.limits(self.now);
        let values = values![token.hash(), seen_after, created_after, self.now];
        let Some((seen_at, user)) = self.backend.first(CURRENT_USER, values).await? else { return Ok(None) };
        let seen_at: i64 = seen_at;
        if self.now - seen_at > lifetimes.idle / SEEN_PARTS {
            self.backend.run(SEEN, values![token.hash(), self.now]).await?;
        }
        Ok(Some(user))
    }

    /// The user with this address, and the stored password hash.
    pub async fn credentials(&self, email: &str) -> Result<Option<(UserId, String)>, B::Error> {
        self.backend.first(CREDENTIALS, values![email]).await
    }

    /// Changes the user's password and ends the user's other sessions, in one statement.
    pub async fn set_password(&self, user: &CurrentUser, hash: &str) -> Result<(), B::Error> {
        let change = Change::new(self.now, &user.email, "changed password");
        let values = values![&user.user, hash, change.ends_sessions_except(&user.session)];
        self.backend.run(SET_PASSWORD, values).await?;
        Ok(())
    }
}

impl<B: Backend> Operator<'_, B> {
    /// All operators, by address.
    pub async fn operators(&self) -> Result<Vec<User>, B::Error> {
        self.store.backend.all(OPERATORS, values![]).await
    }

    /// The users of an account, or of all accounts and of none, by address.
    pub async fn every_user(&self, account: Option<&AccountId>) -> Result<Vec<ListedUser>, B::Error> {
        self.store.backend.all(EVERY, values![account.map(AccountId::as_str)]).await
    }

    /// Whether an operator exists who may sign in.
    pub async fn has_operator(&self) -> Result<bool, B::Error> {
        self.store.backend.exists(HAS_OPERATOR, values![]).await
    }

    /// Whether a user with this address has an account.
    pub async fn has_account(&self, email: &Email) -> Result<bool, B::Error> {
        self.store.backend.exists(HAS_ACCOUNT, values![email.as_str()]).await
    }

    /// Removes an operator of any account, or of none, with the user's sessions and open invites, in one statement. It is
    /// not found if it is this operator.
    pub async fn remove_operator(&self, user: &str) -> Result<MemberChange, B::Error> {
        let change = self.change("removed operator").deletes();
        if self.store.backend.run(REMOVE_OPERATOR, values![user, self.user, change]).await? {
            return Ok(MemberChange::Done);
        }
        let exists = self.store.backend.exists(IS_OPERATOR, values![user, self.user]).await?;
        Ok(if exists { MemberChange::LastOwner } else { MemberChange::NotFound })
    }

    /// Makes this account the one that the operator works in, without becoming a member; `false` if there is no such
    /// account.
    pub async fn join(&self, account: &str) -> Result<bool, B::Error> {
        let change = self.change("switched account").account(account);
        self.store.backend.run(JOIN, values![self.user, account, change]).await
    }

    /// Ends the work in another account than the operator's own.
    pub async fn leave(&self) -> Result<bool, B::Error> {
        self.store.backend.run(LEAVE, values![self.user, self.change("left account")]).await
    }
}
