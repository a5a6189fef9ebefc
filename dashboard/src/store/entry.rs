//! Coming in and going out: invites, sign-in, sessions.
//!
//! Invariant: a session's token is new at every sign-in and is nobody's choice; an invite is used
//! up by the same statement that finds it good.

use platen_component::{
    database::{Value, text_or_null},
    platform,
};
use platen_shared::{
    id::{SessionId, UserId},
    token::Token,
};

use super::{Lifetimes, Store, StoreError};
use crate::throttle::{Subject, WINDOW_SECONDS};

const INVITE: &str = "SELECT email FROM invites WHERE hash = ?1 AND used_at IS NULL AND expires_at > ?2";
const USE_INVITE: &str = "UPDATE invites SET used_at = ?2 \
    WHERE hash = ?1 AND used_at IS NULL AND expires_at > ?2 RETURNING email, account_id, operator";
// Somebody who is there already keeps the account unless the invite names one.
const PUT_USER: &str = "INSERT INTO users (id, email, account_id, operator, password, created_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (email) DO UPDATE SET password = excluded.password, \
    account_id = coalesce(users.account_id, excluded.account_id), \
    operator = max(users.operator, excluded.operator) RETURNING id";
const CREDENTIALS: &str = "SELECT id, password FROM users WHERE email = ?1 AND disabled_at IS NULL";
// A password that was changed meanwhile is kept.
const REPLACE_PASSWORD: &str = "UPDATE users SET password = ?3 WHERE id = ?1 AND password = ?2 RETURNING id";
const BEGIN: &str = "INSERT INTO sessions (hash, id, user_id, created_at, seen_at, address, agent) \
    VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6) RETURNING id";
const FORGET_ENDED: &str =
    "DELETE FROM sessions WHERE user_id = ?1 AND (seen_at <= ?2 OR created_at <= ?3) RETURNING id";
const END: &str = "DELETE FROM sessions WHERE hash = ?1 RETURNING id";
const END_ALL: &str = "DELETE FROM sessions WHERE user_id = ?1 AND id IS NOT ?2 RETURNING id";
const TRY: &str = "INSERT INTO sign_in_tries (subject, began_at, tries) VALUES (?1, ?2, 1) \
    ON CONFLICT (subject) DO UPDATE SET \
    tries = CASE WHEN began_at <= ?2 - ?3 THEN 1 ELSE tries + 1 END, \
    began_at = CASE WHEN began_at <= ?2 - ?3 THEN ?2 ELSE began_at END RETURNING tries, began_at";
const FORGET_TRIES: &str = "DELETE FROM sign_in_tries WHERE subject = ?1 OR began_at <= ?2 RETURNING subject";
const TAKE_TRY_BACK: &str =
    "UPDATE sign_in_tries SET tries = tries - 1 WHERE subject = ?1 AND tries > 0 RETURNING tries";

/// Where a session comes from, as its list shows it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) address: String,
    pub(crate) agent: String,
}

impl Store {
    /// For whom an invite is that is still good.
    pub(crate) async fn invited(&self, token: &Token) -> Result<Option<String>, StoreError> {
        let row = self.one_row(INVITE, vec![token.hash().into(), self.now.into()]).await?;
        Ok(row.map(|row| row.text(0)).transpose()?)
    }

    /// Uses an invite up and gives its person this password; `None` if it is not good any more.
    pub(crate) async fn accept_invite(
        &self,
        token: &Token,
        password: &str,
    ) -> Result<Option<UserId>, StoreError> {
        let values = vec![token.hash().into(), self.now.into()];
        let Some(invite) = self.one_row(USE_INVITE, values).await? else { return Ok(None) };
        let email = invite.text(0)?;
        let values = vec![
            UserId::from_random(platform::random()).as_str().into(),
            email.as_str().into(),
            text_or_null(invite.optional_text(1)?.as_deref()),
            Value::Integer(invite.number(2)?),
            password.into(),
            self.now.into(),
        ];
        let Some(row) = self.one_row(PUT_USER, values).await? else { return Ok(None) };
        let user = UserId::from_text(row.text(0)?);
        // A link for a forgotten password also turns out whoever else has come in.
        self.end_sessions(&user, None).await?;
        self.rows(FORGET_TRIES, vec![Subject::email(&email).hash.into(), Value::Integer(0)]).await?;
        self.audit(&email, None, "accepted invite", &email).await?;
        Ok(Some(user))
    }

    /// A person and what is stored of the password.
    pub(crate) async fn credentials(&self, email: &str) -> Result<Option<(UserId, String)>, StoreError> {
        let Some(row) = self.one_row(CREDENTIALS, vec![email.into()]).await? else { return Ok(None) };
        Ok(Some((UserId::from_text(row.text(0)?), row.text(1)?)))
    }

    /// Replaces the stored hash of a password with another hash of the same password.
    pub(crate) async fn replace_password_hash(
        &self,
        user: &UserId,
        old_hash: &str,
        new_hash: &str,
    ) -> Result<(), StoreError> {
        let values = vec![user.as_str().into(), old_hash.into(), new_hash.into()];
        self.rows(REPLACE_PASSWORD, values).await?;
        Ok(())
    }

    /// Counts a try; gives the seconds to wait if there have been too many.
    pub(crate) async fn count_try(&self, subject: &Subject) -> Result<Option<u64>, StoreError> {
        let window = i64::try_from(WINDOW_SECONDS).unwrap_or(i64::MAX);
        let values = vec![subject.hash.as_str().into(), self.now.into(), window.into()];
        let Some(row) = self.one_row(TRY, values).await? else { return Ok(None) };
        let (tries, began): (u32, i64) = (row.number(0)?, row.number(1)?);
        let left = u64::try_from(began + window - self.now).unwrap_or(0).max(1);
        Ok((tries > subject.allowed).then_some(left))
    }

    /// A good sign-in: the address's tries are forgotten, and this one does not count for where it
    /// came from. Long past tries of others go with them.
    pub(crate) async fn forget_tries(&self, email: &Subject, address: &Subject) -> Result<(), StoreError> {
        let past = self.now - i64::try_from(WINDOW_SECONDS).unwrap_or(0);
        self.rows(FORGET_TRIES, vec![email.hash.as_str().into(), past.into()]).await?;
        self.rows(TAKE_TRY_BACK, vec![address.hash.as_str().into()]).await?;
        Ok(())
    }

    /// Begins a session with a new token, in place of the one the browser held. Those of the person's
    /// that are over are forgotten.
    pub(crate) async fn begin_session(
        &self,
        user: &UserId,
        origin: &Origin,
        former: Option<&Token>,
        lifetimes: Lifetimes,
    ) -> Result<Token, StoreError> {
        let (seen, created) = (self.now - lifetimes.idle, self.now - lifetimes.whole);
        self.rows(FORGET_ENDED, vec![user.as_str().into(), seen.into(), created.into()]).await?;
        if let Some(former) = former {
            self.end_session(former).await?;
        }
        let token = Token::from_random(platform::random());
        let values = vec![
            token.hash().into(),
            SessionId::from_random(platform::random()).as_str().into(),
            user.as_str().into(),
            self.now.into(),
            origin.address.as_str().into(),
            origin.agent.as_str().into(),
        ];
        self.rows(BEGIN, values).await?;
        Ok(token)
    }

    /// Ends the session of a cookie.
    pub(crate) async fn end_session(&self, token: &Token) -> Result<(), StoreError> {
        self.rows(END, vec![token.hash().into()]).await?;
        Ok(())
    }

    /// Ends all sessions of a person but one.
    pub(crate) async fn end_sessions(
        &self,
        user: &UserId,
        but: Option<&SessionId>,
    ) -> Result<(), StoreError> {
        let but = text_or_null(but.map(SessionId::as_str));
        self.rows(END_ALL, vec![user.as_str().into(), but]).await?;
        Ok(())
    }
}
