//! Invites: links with which users come to the dashboard and set a password.
//!
//! Invariant: the database holds the hash of a link's token, never the token. An address has at most
//! one open invite, and an invite is used by the statement that finds it valid. The link of an invite that an owner
//! of an account has created makes a new user, and never changes one who exists. A revoked invite has `used_at` too.

use platen_shared::{
    email::Email,
    id::{AccountId, InviteId, UserId},
    token::Token,
};

use crate::{
    AccountScope, Backend, Operator, OwnerScope, Store, Timestamp,
    backend::{Query as _, record, values},
    role::{Role, by_owner},
    scope::Scoped,
};

/// What an invite gives its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InviteTarget<'t> {
    /// The id of an account; without one a user keeps the account.
    pub account: Option<&'t str>,
    /// The role of a new user of the account. The first user of an account is an owner, and a user who is in the
    /// account already keeps the role.
    pub role: Role,
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
    /// The role in the account, if no other user joins it before.
    pub role: Role,
    /// Whether the user is an operator once the invite is used.
    pub operator: bool,
    /// The time after which the link is not valid.
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

/// Why an owner's invite was not created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerInviteRefusal {
    /// The user is in the account already.
    AlreadyMember,
    /// The address has a user elsewhere, or an open invite that is not one of this account.
    NotAvailable,
}

/// The state of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InviteState {
    /// It can be used, by the user with this address.
    Open(String),
    /// It was revoked.
    Revoked,
    /// It is unknown, used or expired.
    Invalid,
}

record! {
    /// An invite that can be used.
    pub struct PendingInvite {
        pub id: InviteId,
        pub email: String,
        pub account: Option<AccountId>,
        pub account_name: Option<String>,
        /// The role in the account, if no other user joins it before.
        pub role: Role,
        pub operator: bool,
        /// Whether a user with this address exists, who sets a new password with the link.
        pub user_exists: bool,
        pub created_at: Timestamp,
        pub expires_at: Timestamp,
        /// Who has created it: an e-mail address, or `command line`.
        pub created_by: Option<String>,
    }
}

// The upsert replaces an open invite of the same address: the schema allows one.
const INVITE: &str = "INSERT INTO invites (hash, email, account_id, operator, created_at, expires_at, last_change, \
    is_owner, id) \
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE (?3 IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = ?3)) \
    AND NOT EXISTS (SELECT 1 FROM users WHERE email = ?2 AND account_id <> ?3) \
    AND (?3 IS NOT NULL OR ?4 OR EXISTS (SELECT 1 FROM users WHERE email = ?2)) \
    ON CONFLICT (email) WHERE used_at IS NULL DO UPDATE SET hash = excluded.hash, \
    account_id = excluded.account_id, operator = excluded.operator, created_at = excluded.created_at, \
    expires_at = excluded.expires_at, last_change = excluded.last_change, is_owner = excluded.is_owner, \
    id = excluded.id, only_new = 0 \
    RETURNING coalesce((SELECT account_id FROM users WHERE email = ?2), ?3), \
    coalesce((SELECT is_owner FROM users WHERE email = ?2 AND account_id IS NOT NULL), \
    ?8 OR NOT EXISTS (SELECT 1 FROM users WHERE account_id = ?3)), \
    ?4 OR EXISTS (SELECT 1 FROM users WHERE email = ?2 AND operator)";
const ACCOUNT_OF: &str = "SELECT account_id FROM users WHERE email = ?1";
// An open invite is replaced if it is one of this account without the rights of an operator, or has expired.
const INVITE_BY_OWNER: Scoped = Scoped::new(concat!(
    "INSERT INTO invites (account_id, hash, id, email, is_owner, operator, created_at, expires_at, last_change, only_new) \
     SELECT ?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, 1 WHERE NOT EXISTS (SELECT 1 FROM users WHERE email = ?4) AND ",
    by_owner!("?9"),
    " ON CONFLICT (email) WHERE used_at IS NULL DO UPDATE SET account_id = excluded.account_id, hash = excluded.hash, \
     id = excluded.id, is_owner = excluded.is_owner, operator = 0, created_at = excluded.created_at, \
     expires_at = excluded.expires_at, last_change = excluded.last_change, only_new = 1 \
     WHERE invites.expires_at <= ?6 OR (invites.account_id = ?1 AND NOT invites.operator) RETURNING id"
));
const IS_MEMBER: Scoped = Scoped::new("SELECT 1 FROM users WHERE account_id = ?1 AND email = ?2");
const INVITED: &str = "SELECT email, revoked_at IS NOT NULL FROM invites i WHERE hash = ?1 AND (revoked_at IS NOT NULL \
    OR (used_at IS NULL AND expires_at > ?2 AND (NOT only_new OR NOT EXISTS (SELECT 1 FROM users u WHERE u.email = i.email))))";
// The triggers of `users` mark the invite as used and end the sessions of a user who exists already.
const ACCEPT: &str = "INSERT INTO users (id, email, account_id, operator, password, created_at, last_change, is_owner) \
    SELECT ?3, email, account_id, operator, ?4, ?2, json_object('at', ?2, 'actor', email, \
    'action', 'accepted invite', 'invite', hash, 'ends_sessions', 1), \
    max(is_owner, NOT EXISTS (SELECT 1 FROM users u WHERE u.account_id = i.account_id)) \
    FROM invites i WHERE hash = ?1 AND used_at IS NULL AND expires_at > ?2 \
    AND (NOT only_new OR NOT EXISTS (SELECT 1 FROM users u WHERE u.email = i.email)) \
    ON CONFLICT (email) DO UPDATE SET password = excluded.password, \
    is_owner = CASE WHEN users.account_id IS NULL THEN excluded.is_owner ELSE users.is_owner END, \
    account_id = coalesce(users.account_id, excluded.account_id), \
    operator = max(users.operator, excluded.operator), last_change = excluded.last_change RETURNING id, email";

macro_rules! select_pending {
    ($now:literal, $rest:literal) => {
        concat!(
            "SELECT i.id, i.email, i.account_id, a.name, \
             max(i.is_owner, NOT EXISTS (SELECT 1 FROM users u WHERE u.account_id = i.account_id)), i.operator, \
             EXISTS (SELECT 1 FROM users u WHERE u.email = i.email), i.created_at, i.expires_at, \
             json_extract(i.last_change, '$.actor') FROM invites i LEFT JOIN accounts a ON a.id = i.account_id \
             WHERE i.used_at IS NULL AND i.id IS NOT NULL AND i.expires_at > ",
            $now,
            " ",
            $rest
        )
    };
}

const PENDING: Scoped = Scoped::new(select_pending!("?2", "AND i.account_id = ?1 ORDER BY i.email"));
const ALL_PENDING: &str = select_pending!("?1", "ORDER BY i.created_at DESC, i.email LIMIT ?2 OFFSET ?3");
const COUNT_PENDING: &str =
    "SELECT count(*) FROM invites WHERE used_at IS NULL AND id IS NOT NULL AND expires_at > ?1";
const REVOKE: Scoped = Scoped::new(concat!(
    "UPDATE invites SET used_at = ?3, revoked_at = ?3, last_change = ?4 WHERE account_id = ?1 AND id = ?2 \
     AND used_at IS NULL AND expires_at > ?3 AND NOT operator AND ",
    by_owner!("?5"),
    " RETURNING id"
));
const REVOKE_ANY: &str = "UPDATE invites SET used_at = ?2, revoked_at = ?2, \
    last_change = CASE WHEN account_id IS NULL THEN ?3 ELSE json_set(?3, '$.account', account_id) END \
    WHERE id = ?1 AND used_at IS NULL AND expires_at > ?2 RETURNING id";

impl<B: Backend> Operator<'_, B> {
    /// Creates an invite that is valid for this many seconds. It replaces an open invite of the address, in
    /// the same statement. Only when nothing is inserted does a second statement find the reason.
    pub async fn invite(
        &self,
        email: &Email,
        target: InviteTarget<'_>,
        seconds: i64,
    ) -> Result<Result<Invite, InviteRefusal>, B::Error> {
        let InviteTarget { account, role, operator } = target;
        let backend = &self.store.backend;
        let token = Token::from_random(backend.random()?);
        let mut change = self.change(if operator { "invited operator" } else { "invited" });
        if let Some(account) = account {
            change = change.account(account);
        }
        let (email, now) = (email.as_str(), self.store.now);
        let expires_at = now + seconds;
        let (id, is_owner) = (InviteId::from_random(backend.random()?), role.is_owner());
        let values = values![token.hash(), email, account, operator, now, expires_at, change, is_owner, &id];
        if let Some((account, role, operator)) = backend.run_returning(INVITE, values).await? {
            return Ok(Ok(Invite { token, account, role, operator, expires_at: Timestamp(expires_at) }));
        }
        let current: Option<(Option<String>,)> = backend.first(ACCOUNT_OF, values![email]).await?;
        Ok(Err(match (account, current.and_then(|(account,)| account)) {
            (None, _) => InviteRefusal::NoTarget,
            (Some(account), Some(current)) if current != account => InviteRefusal::OtherAccount,
            (Some(_), _) => InviteRefusal::NoSuchAccount,
        }))
    }

    /// The number of invites that can be used.
    pub async fn count_pending_invites(&self) -> Result<u64, B::Error> {
        let row = self.store.backend.first(COUNT_PENDING, values![self.store.now]).await?;
        Ok(row.map_or(0, |(count,)| count))
    }

    /// Invites of all accounts and of none that can be used, the newest first: at most `limit`, after the first `offset`.
    pub async fn pending_invites(&self, limit: u64, offset: u64) -> Result<Vec<PendingInvite>, B::Error> {
        self.store.backend.all(ALL_PENDING, values![self.store.now, limit, offset]).await
    }

    /// The invites of an account that can be used, by address.
    pub async fn pending_invites_of(&self, account: &str) -> Result<Vec<PendingInvite>, B::Error> {
        self.store.backend.all(PENDING.sql(), values![account, self.store.now]).await
    }

    /// Revokes an invite; `false` if there is none with this id that can be used.
    pub async fn revoke_invite(&self, id: &str) -> Result<bool, B::Error> {
        let change = self.change("revoked invite");
        self.store.backend.run(REVOKE_ANY, values![id, self.store.now, change]).await
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// The invites to the account that can be used, by address.
    pub async fn pending_invites(&self) -> Result<Vec<PendingInvite>, B::Error> {
        self.all(PENDING, values![self.now()]).await
    }
}

impl<B: Backend> OwnerScope<'_, B> {
    /// Invites a new user to the account. It replaces an open invite of the address to this account, in the same
    /// statement. Only when nothing is inserted does a second statement find the reason.
    pub async fn invite_member(
        &self,
        email: &Email,
        role: Role,
        seconds: i64,
    ) -> Result<Result<Token, OwnerInviteRefusal>, B::Error> {
        let (token, id) = (Token::from_random(self.random()?), InviteId::from_random(self.random()?));
        let (email, now) = (email.as_str(), self.now());
        let change = self.change("invited");
        let expires_at = now + seconds;
        let values = values![token.hash(), &id, email, role.is_owner(), now, expires_at, change, self.user];
        if self.run(INVITE_BY_OWNER, values).await? {
            return Ok(Ok(token));
        }
        let is_member = self.exists(IS_MEMBER, values![email]).await?;
        Ok(Err(if is_member { OwnerInviteRefusal::AlreadyMember } else { OwnerInviteRefusal::NotAvailable }))
    }

    /// Revokes an invite to the account; `false` if there is none with this id that can be used, or it is that
    /// of an operator.
    pub async fn revoke_invite(&self, id: &str) -> Result<bool, B::Error> {
        self.run(REVOKE, values![id, self.now(), self.change("revoked invite"), self.user]).await
    }
}

impl<B: Backend> Store<B> {
    /// The state of an invite's link.
    pub async fn invited(&self, token: &Token) -> Result<InviteState, B::Error> {
        let row = self.backend.first(INVITED, values![token.hash(), self.now]).await?;
        Ok(match row {
            Some((_, true)) => InviteState::Revoked,
            Some((email, false)) => InviteState::Open(email),
            None => InviteState::Invalid,
        })
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
        self.backend.run_returning(ACCEPT, values![token.hash(), self.now, &id, password_hash]).await
    }
}
