//! An attempt that was made, on its way into the log that the dashboard shows.
//!
//! Invariant: it is written only after the answer was handed to the platform, by a task of its own
//! that nothing waits for: a database that is slow or broken costs the caller nothing.

use std::time::{Duration, Instant};

use platen_shared::{id::AccountId, key::ApiKey};
use spin_sdk::wit_bindgen;

use super::{Endpoint, database::Database, log};

/// What the log holds of an attempt.
pub(super) struct Attempt {
    pub(super) key_hash: String,
    pub(super) account: AccountId,
    pub(super) endpoint: &'static str,
    pub(super) format: &'static str,
    pub(super) status: u16,
    pub(super) counted: bool,
    pub(super) elapsed: Duration,
    pub(super) bytes: Option<i64>,
    pub(super) at: u64,
    request_id: String,
}

impl Attempt {
    /// An attempt of which only its outcome is not known yet.
    pub(super) fn begin(
        request_id: &str,
        key: &ApiKey,
        account: &AccountId,
        endpoint: Endpoint,
        format: &'static str,
        at: u64,
    ) -> Self {
        let endpoint = match endpoint {
            Endpoint::Render => "render",
            Endpoint::Template => "template",
        };
        Self {
            key_hash: key.hash(),
            account: account.clone(),
            endpoint,
            format,
            status: 500,
            counted: true,
            elapsed: Duration::ZERO,
            bytes: None,
            at,
            request_id: request_id.to_owned(),
        }
    }

    /// Writes it down when the answer has gone.
    pub(super) fn write_later(mut self, status: u16, started: Instant) {
        self.status = status;
        self.elapsed = started.elapsed();
        wit_bindgen::spawn(async move {
            let written = async { Database::open().await?.log(&self).await }.await;
            if let Err(error) = written {
                log::attempt_lost(&self.request_id, &error);
            }
        });
    }
}
