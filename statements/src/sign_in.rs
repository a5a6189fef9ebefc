//! Counts of sign-in attempts, by hashed subject: an e-mail address or a network address.

use crate::{
    Backend, Store,
    backend::{Query as _, values},
};

const COUNT: &str = "INSERT INTO sign_in_tries (subject, began_at, tries) VALUES (?1, ?2, 1) \
    ON CONFLICT (subject) DO UPDATE SET \
    tries = CASE WHEN began_at <= ?2 - ?3 THEN 1 ELSE tries + 1 END, \
    began_at = CASE WHEN began_at <= ?2 - ?3 THEN ?2 ELSE began_at END RETURNING tries, began_at";
const DELETE: &str = "DELETE FROM sign_in_tries WHERE subject = ?1 OR began_at <= ?2 RETURNING subject";
const TAKE_BACK: &str =
    "UPDATE sign_in_tries SET tries = tries - 1 WHERE subject = ?1 AND tries > 0 RETURNING tries";

impl<B: Backend> Store<B> {
    /// Counts a sign-in attempt in a window of this many seconds. Returns the seconds until the window
    /// ends if it has more than `allowed` attempts.
    pub async fn count_sign_in(
        &self,
        subject: &str,
        allowed: u32,
        window: i64,
    ) -> Result<Option<u64>, B::Error> {
        let Some((tries, began_at)) =
            self.backend.run_returning(COUNT, values![subject, self.now, window]).await?
        else {
            return Ok(None);
        };
        let (tries, began_at): (u32, i64) = (tries, began_at);
        let left = u64::try_from(began_at + window - self.now).unwrap_or(0).max(1);
        Ok((tries > allowed).then_some(left))
    }

    /// Deletes the count of a subject, and the counts whose windows are over.
    pub async fn delete_sign_ins(&self, subject: &str, window: i64) -> Result<(), B::Error> {
        self.backend.run(DELETE, values![subject, self.now - window]).await?;
        Ok(())
    }

    /// Takes one attempt of a subject back.
    pub async fn take_sign_in_back(&self, subject: &str) -> Result<(), B::Error> {
        self.backend.run(TAKE_BACK, values![subject]).await?;
        Ok(())
    }
}
