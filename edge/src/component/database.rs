//! The statements of the edge.
//!
//! Invariant: a render takes one statement, [`Database::claim`]. Only when it returns no row does
//! [`Database::key_status`] find the reason. [`Database::log`] is for after the response.

use platen_component::database::{self, DatabaseError};
use platen_shared::key::ApiKey;
use platen_statements::attempts::{self, Attempt, Claim, KeyPurpose, KeyStatus, PresentedKey};

use crate::{
    quota::QuotaMonth,
    request::{RenderRequest, Subject},
};

/// A connection for one request.
pub(super) struct Database(database::Database);

impl Database {
    pub(super) async fn open() -> Result<Self, DatabaseError> {
        Ok(Self(database::Database::open().await?))
    }

    /// Records an attempt; `None` if the key, the template, its variables or the quota forbids it.
    pub(super) async fn claim(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        request: &RenderRequest,
    ) -> Result<Option<Claim>, DatabaseError> {
        let key = presented(key, month);
        match &request.subject {
            Subject::Source(_) => attempts::claim(&self.0, key, None).await,
            Subject::Template { id, variables } => {
                let names: Vec<&str> = variables.keys().map(String::as_str).collect();
                attempts::claim(&self.0, key, Some((id, &names))).await
            }
        }
    }

    /// The account and usage of a key; `None` if the key is not valid for this purpose.
    pub(super) async fn key_status(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        purpose: KeyPurpose<'_>,
    ) -> Result<Option<KeyStatus>, DatabaseError> {
        attempts::key_status(&self.0, presented(key, month), purpose).await
    }

    /// Takes a recorded attempt back, because no page ran for it.
    pub(super) async fn refund(&self, claim: &Claim) -> Result<(), DatabaseError> {
        attempts::refund(&self.0, claim).await
    }

    /// Writes a finished attempt to the log.
    pub(super) async fn log(&self, attempt: &Attempt) -> Result<(), DatabaseError> {
        attempts::log(&self.0, attempt).await
    }
}

fn presented<'k>(key: &'k ApiKey, month: &'k QuotaMonth) -> PresentedKey<'k> {
    PresentedKey { key, month: &month.name, now: month.now }
}
