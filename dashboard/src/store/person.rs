//! What a person may do about themselves: the password and the sessions.

use super::{CurrentUser, Lifetimes, Store, StoreError};
use crate::{clock::Timestamp, pages::profile::Session};

const SESSIONS: &str = "SELECT id, created_at, seen_at, address, agent FROM sessions \
    WHERE user_id = ?1 AND seen_at > ?2 AND created_at > ?3 ORDER BY seen_at DESC, created_at DESC";
const END: &str = "DELETE FROM sessions WHERE user_id = ?1 AND id = ?2 RETURNING id";
const SET_PASSWORD: &str = "UPDATE users SET password = ?2 WHERE id = ?1 RETURNING id";

impl Store {
    /// The current_user's sessions, the last used first.
    pub(crate) async fn sessions(
        &self,
        current_user: &CurrentUser,
        lifetimes: Lifetimes,
    ) -> Result<Vec<Session>, StoreError> {
        let (seen_after, created_after) = (self.now - lifetimes.idle, self.now - lifetimes.whole);
        let values = vec![current_user.user.as_str().into(), seen_after.into(), created_after.into()];
        let mut sessions = Vec::new();
        for row in self.rows(SESSIONS, values).await? {
            let id = row.text(0)?;
            sessions.push(Session {
                is_current: id == current_user.session.as_str(),
                id,
                created: Timestamp(row.number(1)?),
                last_seen: Timestamp(row.number(2)?),
                address: row.text(3)?,
                user_agent: row.text(4)?,
            });
        }
        Ok(sessions)
    }

    /// Ends one of the current_user's sessions; `false` if there is none of that id.
    pub(crate) async fn end_session_of(
        &self,
        current_user: &CurrentUser,
        id: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.one_row(END, vec![current_user.user.as_str().into(), id.into()]).await?.is_some())
    }

    /// Changes the current_user's password and ends their other sessions.
    pub(crate) async fn set_password(
        &self,
        current_user: &CurrentUser,
        password: &str,
    ) -> Result<(), StoreError> {
        self.rows(SET_PASSWORD, vec![current_user.user.as_str().into(), password.into()]).await?;
        self.end_sessions(&current_user.user, Some(&current_user.session)).await?;
        self.audit(&current_user.email, None, "changed password", &current_user.email).await
    }
}
