//! Sessions of signed-in users, and counts of sign-in attempts by hashed subject: an e-mail address or a network address. A
//! session has a new random token at every sign-in; its hash is stored.

use platen_shared::{
    id::{SessionId, UserId},
    token::Token,
};

use crate::{
    Backend, Store, Timestamp,
    backend::{Query as _, record, values},
    current_user::CurrentUser,
};

/// How long sessions last, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    /// The time without being used.
    pub idle: i64,
    /// The time in total.
    pub whole: i64,
}

impl Lifetimes {
    /// The times after which a session that lasts was used, and created.
    pub(crate) fn limits(self, now: i64) -> (i64, i64) {
        (now - self.idle, now - self.whole)
    }
}

/// Where a session was begun.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Network address, without a port.
    pub address: String,
    /// The browser's `user-agent`.
    pub agent: String,
}

record! {
    /// A session in its user's list.
    pub struct Session {
        pub id: SessionId,
        pub created_at: Timestamp,
        /// The last use, late by at most a sixtieth of [`Lifetimes::idle`].
        pub seen_at: Timestamp,
        pub address: String,
        pub agent: String,
    }
}

const LIST: &str = "SELECT id, created_at, seen_at, address, agent FROM sessions \
    WHERE user_id = ?1 AND seen_at > ?2 AND created_at > ?3 ORDER BY seen_at DESC, created_at DESC";
const BEGIN: &str = "INSERT INTO sessions (hash, id, user_id, created_at, seen_at, address, agent) \
    VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6) RETURNING id";
const DELETE_PAST: &str = "DELETE FROM sessions \
    WHERE (user_id = ?1 AND (seen_at <= ?2 OR created_at <= ?3)) OR hash = ?4 RETURNING id";
const END: &str = "DELETE FROM sessions WHERE hash = ?1 RETURNING id";
const END_ONE: &str = "DELETE FROM sessions WHERE user_id = ?1 AND id = ?2 RETURNING id";
const END_OTHERS: &str = "DELETE FROM sessions WHERE user_id = ?1 AND id <> ?2 RETURNING id";

const COUNT_TRY: &str = "INSERT INTO sign_in_tries (subject, began_at, tries) VALUES (?1, ?2, 1) \
    ON CONFLICT (subject) DO UPDATE SET \
    tries = CASE WHEN began_at <= ?2 - ?3 THEN 1 ELSE tries + 1 END, \
    began_at = CASE WHEN began_at <= ?2 - ?3 THEN ?2 ELSE began_at END RETURNING tries, began_at";
const DELETE_TRIES: &str = "DELETE FROM sign_in_tries WHERE subject = ?1 OR began_at <= ?2 RETURNING subject";
const TAKE_BACK_TRY: &str =
    "UPDATE sign_in_tries SET tries = tries - 1 WHERE subject = ?1 AND tries > 0 RETURNING tries";

impl<B: Backend> Store<B> {
    /// The user's sessions, the last used first.
    pub async fn sessions(&self, user: &CurrentUser, lifetimes: Lifetimes) -> Result<Vec<Session>, B::Error> {
        let (seen_after, created_after) = lifetimes.limits(self.now);
        self.backend.all(LIST, values![&user.user, seen_after, created_after]).await
    }

    /// Begins a session with a new token, in place of the one that the browser had. The statement before it
    /// deletes that one and the user's expired sessions; interrupted in between, the user has to sign
    /// in again.
    pub async fn begin_session(
        &self,
        user: &UserId,
        origin: &Origin,
        former: Option<&Token>,
        lifetimes: Lifetimes,
    ) -> Result<Token, B::Error> {
        let (seen_after, created_after) = lifetimes.limits(self.now);
        let values = values![user, seen_after, created_after, former.map(Token::hash)];
        self.backend.run(DELETE_PAST, values).await?;
        let token = Token::from_random(self.backend.random()?);
        let id = SessionId::from_random(self.backend.random()?);
        let (address, agent) = (origin.address.as_str(), origin.agent.as_str());
        let values = values![token.hash(), &id, user, self.now, address, agent];
        self.backend.run(BEGIN, values).await?;
        Ok(token)
    }

    /// Ends the session of a cookie.
    pub async fn end_session(&self, token: &Token) -> Result<(), B::Error> {
        self.backend.run(END, values![token.hash()]).await?;
        Ok(())
    }

    /// Ends one of the user's sessions; `false` if the user has no such session.
    pub async fn end_session_of(&self, user: &CurrentUser, id: &str) -> Result<bool, B::Error> {
        self.backend.run(END_ONE, values![&user.user, id]).await
    }

    /// Ends all of the user's sessions but the current one.
    pub async fn end_other_sessions(&self, user: &CurrentUser) -> Result<(), B::Error> {
        self.backend.run(END_OTHERS, values![&user.user, &user.session]).await?;
        Ok(())
    }

    /// Counts a sign-in attempt in a window of this many seconds. Returns the seconds until the window
    /// ends if it has more than `allowed` attempts.
    pub async fn count_sign_in(
        &self,
        subject: &str,
        allowed: u32,
        window: i64,
    ) -> Result<Option<u64>, B::Error> {
        let Some((tries, began_at)) =
            self.backend.run_returning(COUNT_TRY, values![subject, self.now, window]).await?
        else {
            return Ok(None);
        };
        let (tries, began_at): (u32, i64) = (tries, began_at);
        let left = u64::try_from(began_at + window - self.now).unwrap_or(0).max(1);
        Ok((tries > allowed).then_some(left))
    }

    /// Deletes the count of a subject, and the counts whose windows are over.
    pub async fn delete_sign_ins(&self, subject: &str, window: i64) -> Result<(), B::Error> {
        self.backend.run(DELETE_TRIES, values![subject, self.now - window]).await?;
        Ok(())
    }

    /// Takes one attempt of a subject back.
    pub async fn take_sign_in_back(&self, subject: &str) -> Result<(), B::Error> {
        self.backend.run(TAKE_BACK_TRY, values![subject]).await?;
        Ok(())
    }
}
