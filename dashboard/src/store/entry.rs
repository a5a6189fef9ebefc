//! Sign-in attempts by subject, and invites.

use platen_shared::{id::UserId, token::Token};

pub(crate) use platen_statements::sessions::Origin;

use super::{Store, StoreError};
use crate::throttle::{Subject, WINDOW_SECONDS};

const WINDOW: i64 = WINDOW_SECONDS.cast_signed();

impl Store {
    /// Uses an invite and stores its user's password hash; `None` if the invite is not valid. The count of
    /// the address is deleted afterwards: where that fails, it ends with its window.
    pub(crate) async fn accept_invite(
        &self,
        token: &Token,
        password_hash: &str,
    ) -> Result<Option<UserId>, StoreError> {
        let Some((user, email)) = self.0.accept_invite(token, password_hash).await? else { return Ok(None) };
        self.delete_sign_ins(&Subject::email(&email).hash, WINDOW).await?;
        Ok(Some(user))
    }

    /// Counts a sign-in attempt; returns the seconds to wait if there were too many.
    pub(crate) async fn count_try(&self, subject: &Subject) -> Result<Option<u64>, StoreError> {
        self.count_sign_in(&subject.hash, subject.allowed, WINDOW).await
    }

    /// After a successful sign-in: deletes the count of the e-mail address, and takes this attempt back for
    /// the network address.
    pub(crate) async fn forget_tries(&self, email: &Subject, address: &Subject) -> Result<(), StoreError> {
        self.delete_sign_ins(&email.hash, WINDOW).await?;
        self.take_sign_in_back(&address.hash).await
    }
}
