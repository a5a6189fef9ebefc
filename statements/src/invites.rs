//! Invites: links with which users come to the dashboard and set a password.
//!
//! Invariant: the database holds the hash of a link's token, never the token. An address has at most
//! one open invite, and an invite is used by the statement that finds it valid.

use platen_shared::{
    email::Email,
    id::{AccountId, UserId},
    token::Token,
};

use crate::{
    Backend, Operator, Store, Timestamp,
    backend::{Query as _, values},
};

/// What an invite gives its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InviteTarget<'t> {
    /// The id of an account; without one a user keeps the account.
    pub account: Option<&'t str>,
    /// The rights of an operator; without them a user keeps the rights.
    pub operator: bool,
}

/// A created invite.
#[derive(Debug, Clone)]
pub struct Invite {
    /// The secret at the end of the link.
    pub token: Token,
    /// The user's account once the invite is used.
    pub account: Option<AccountId>,
    /// Whether the user is an operator once the invite is used.
    pub operator: bool,
    /// After which the link is not valid.
    pub expires_at: Timestamp,
}

/// Why no invite was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InviteRefusal {
    /// There is no account with this id.
    NoSuchAccount,
    /// The user belongs to another account.
    OtherAccount,
    /// The target is empty and there is no user with this address.
    NoTarget,
}

// The upsert replaces an open invite of the same address: the schema allows one.
const INVITE: &str = "INSERT INTO invites (hash, email, account_id, operator, created_at, expires_at, last_change) \
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE (?3 IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = ?3)) \
    AND NOT EXISTS (SELECT 1 FROM users WHERE email = ?2 AND account_id <> ?3) \
    AND (?3 IS NOT NULL OR ?4 OR EXISTS (SELECT 1 FROM users WHERE email = ?2)) \
    ON CONFLICT (email) WHERE used_at IS NULL DO UPDATE SET hash = excluded.hash, \
    account_id = excluded.account_id, operator = excluded.operator, created_at = excluded.created_at, \
    expires_at = excluded.expires_at, last_change = excluded.last_change \
    RETURNING coalesce((SELECT account_id FROM users WHERE email = ?2), ?3), \
    ?4 OR EXISTS (SELECT 1 FROM users WHERE email = ?2 AND operator)";
const ACCOUNT_OF: &str = "SELECT account_id FROM users WHERE email = ?1";
const INVITED: &str = "SELECT email FROM invites WHERE hash = ?1 AND used_at IS NULL AND expires_at > ?2";
// The triggers of `users` mark the invite as used and end the sessions of a user who exists already.
const ACCEPT: &str = "INSERT INTO users (id, email, account_id, operator, password, created_at, last_change) \
    SELECT ?3, email, account_id, operator, ?4, ?2, json_object('at', ?2, 'actor', email, \
    'action', 'accepted invite', 'invite', hash, 'ends_sessions', 1) \
    FROM invites WHERE hash = ?1 AND used_at IS NULL AND expires_at > ?2 \
    ON CONFLICT (email) DO UPDATE SET password = excluded.password, \
    account_id = coalesce(users.account_id, excluded.account_id), \
    operator = max(users.operator, excluded.operator), last_change = excluded.last_change RETURNING id, email";

impl<B: Backend> Operator<'_, B> {
    /// Creates an invite that is valid for this many seconds. It replaces an open invite of the address, in
    /// the same statement. Only when nothing is inserted does a second statement find the reason.
    pub async fn invite(
        &self,
        email: &Email,
        target: InviteTarget<'_>,
        seconds: i64,
    ) -> Result<Result<Invite, InviteRefusal>, B::Error> {
        let InviteTarget { account, operator } = target;
        let backend = &self.store.backend;
        let token = Token::from_random(backend.random()?);
        let mut change = self.change(if operator { "invited operator" } else { "invited" });
        if let Some(account) = account {
            change = change.account(account);
        }
        let (email, now) = (email.as_str(), self.store.now);
        let expires_at = now + seconds;
        let values = values![token.hash(), email, account, operator, now, expires_at, change];
        if let Some((account, operator)) = backend.first(INVITE, values).await? {
            return Ok(Ok(Invite { token, account, operator, expires_at: Timestamp(expires_at) }));
        }
        let current: Option<(Option<String>,)> = backend.first(ACCOUNT_OF, values![email]).await?;
        Ok(Err(match (account, current.and_then(|(account,)| account)) {
            (None, _) => InviteRefusal::NoTarget,
            (Some(account), Some(current)) if current != account => InviteRefusal::OtherAccount,
            (Some(_), _) => InviteRefusal::NoSuchAccount,
        }))
    }
}

impl<B: Backend> Store<B> {
    /// The address of a valid invite.
    pub async fn invited(&self, token: &Token) -> Result<Option<String>, B::Error> {
        let row = self.backend.first(INVITED, values![token.hash(), self.now]).await?;
        Ok(row.map(|(email,)| email))
    }

    /// Uses an invite: creates its user with this password hash, or sets it for the user who exists and ends
    /// that user's sessions, in one statement. Returns the user and the address; `None` if the invite
    /// is not valid.
    pub async fn accept_invite(
        &self,
        token: &Token,
        password_hash: &str,
    ) -> Result<Option<(UserId, String)>, B::Error> {
        let id = UserId::from_random(self.backend.random()?);
        self.backend.first(ACCEPT, values![token.hash(), self.now, &id, password_hash]).await
    }
}
