//! An attempt on its way into the log that the dashboard shows.
//!
//! Invariant: a separate task writes it after the platform has the response, so a slow or broken database
//! does not delay the response.

use std::time::Instant;

use platen_shared::{id::AccountId, key::ApiKey};
use platen_statements::attempts;
use spin_sdk::wit_bindgen;

use super::{database::Database, log};
use crate::endpoint::Endpoint;

/// An attempt that was recorded by a claim.
pub(super) struct Attempt {
    pub(super) entry: attempts::Attempt,
    request_id: String,
}

impl Attempt {
    /// An attempt whose outcome is not known yet.
    pub(super) fn begin(
        request_id: &str,
        key: &ApiKey,
        account: &AccountId,
        endpoint: Endpoint,
        format: &'static str,
        at: u64,
    ) -> Self {
        let entry = attempts::Attempt {
            key_hash: key.hash(),
            account: account.clone(),
            endpoint: endpoint.name(),
            format,
            status: 500,
            counted: true,
            ms: 0,
            bytes: None,
            at,
        };
        Self { entry, request_id: request_id.to_owned() }
    }

    /// Writes the attempt to the log once the response is sent.
    pub(super) fn write_later(mut self, status: u16, started: Instant) {
        self.entry.status = status;
        self.entry.ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        wit_bindgen::spawn(async move {
            let written = async { Database::open().await?.log(&self.entry).await }.await;
            if let Err(error) = written {
                log::attempt_lost(&self.request_id, &error);
            }
        });
    }
}
