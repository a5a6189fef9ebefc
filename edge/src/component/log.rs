//! Log lines on standard error, as `key=value` pairs; one access log line for each request.
//!
//! Invariant: a line contains no key, body, header or path of a caller. The request id was checked and
//! needs no escaping.

use std::{
    fmt::{Debug, Write as _},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use platen_component::log::write_line;
use platen_shared::{endpoint::Endpoint, id::AccountId};
use platen_statements::attempts::Attempt;

use super::failure::Failure;
use crate::api_error::ApiError;

/// The optional fields of the access log line.
#[derive(Default)]
pub(super) struct AccessLog {
    pub(super) endpoint: Option<Endpoint>,
    pub(super) account: Option<AccountId>,
    /// Time from sending the job to the head of the farm's response.
    pub(super) farm_elapsed: Option<Duration>,
    error: Option<String>,
    code: Option<&'static str>,
    cause: Option<String>,
}

impl AccessLog {
    /// Records the error. Messages that quote the caller are replaced by a general one.
    pub(super) fn failed(&mut self, failure: Failure) {
        self.code = Some(failure.error.code());
        self.error = Some(match failure.error {
            ApiError::Invalid(_) => "Invalid request".to_owned(),
            ApiError::Refused(_) => "Refused by the farm".to_owned(),
            other => other.to_string(),
        });
        self.cause = failure.cause;
    }

    pub(super) fn write(&self, request_id: &str, status: u16, elapsed: Duration) {
        let endpoint = self.endpoint.map_or("none", Endpoint::name);
        let elapsed_ms = elapsed.as_millis();
        let mut line = format!(
            "platen-edge request_id={request_id} endpoint={endpoint} status={status} ms={elapsed_ms}"
        );
        let mut pair = |name: &str, value: &dyn Debug| {
            // Writing to a string cannot fail.
            let _ = write!(line, " {name}={value:?}");
        };
        if let Some(account) = &self.account {
            pair("account", &account.as_str());
        }
        if let Some(elapsed) = self.farm_elapsed {
            pair("farm_ms", &elapsed.as_millis());
        }
        if let Some(code) = self.code {
            pair("code", &code);
        }
        for (name, text) in [("error", &self.error), ("cause", &self.cause)] {
            if let Some(text) = text {
                pair(name, text);
            }
        }
        write_line(line);
    }
}

/// Reports attempts whose rows could not be written. Those that were to be refunded count, and have a line each.
pub(super) fn attempts_lost(attempts: &[Attempt], cause: &str) {
    static LOST: AtomicUsize = AtomicUsize::new(0);
    if attempts.is_empty() {
        return;
    }
    for attempt in attempts.iter().filter(|attempt| attempt.refunded_month.is_some()) {
        write_line(format!("platen-edge request_id={} refund_error={cause:?}", attempt.request_id));
    }
    let lost = attempts.len();
    let lost_in_all = LOST.fetch_add(lost, Ordering::Relaxed) + lost;
    write_line(format!("platen-edge attempt_lost={cause:?} attempts={lost} attempts_in_all={lost_in_all}"));
}
