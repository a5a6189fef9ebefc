//! One line a request, on standard error, as `key=value` pairs.
//!
//! Invariant: holds no key, body, header or path a caller wrote; the request id was checked to be
//! plain text before.

use std::{
    fmt::{Debug, Write as _},
    io::Write as _,
    time::Duration,
};

use platen_shared::id::AccountId;

use super::{ApiError, Endpoint, farm::Trace};

/// What is known of a request so far.
pub(super) struct Record {
    request_id: String,
    endpoint: Option<Endpoint>,
    account: Option<AccountId>,
    farm: Option<Duration>,
    error: Option<String>,
    cause: Option<String>,
    refund_error: Option<String>,
}

impl Record {
    pub(super) fn new(trace: &Trace) -> Self {
        Self {
            request_id: trace.request_id.clone(),
            endpoint: None,
            account: None,
            farm: None,
            error: None,
            cause: None,
            refund_error: None,
        }
    }

    pub(super) fn endpoint(&mut self, endpoint: Endpoint) {
        self.endpoint = Some(endpoint);
    }

    pub(super) fn account(&mut self, account: &AccountId) {
        self.account = Some(account.clone());
    }

    /// Time until the head of the farm's answer.
    pub(super) fn farm(&mut self, elapsed: Duration) {
        self.farm = Some(elapsed);
    }

    /// A message that quotes the caller is left out: what a caller writes is not for the log.
    pub(super) fn failed(&mut self, error: &ApiError, cause: Option<String>) {
        self.error = Some(match error {
            ApiError::Invalid(_) => "Invalid request".to_owned(),
            ApiError::Refused(_) => "Refused by the farm".to_owned(),
            other => other.to_string(),
        });
        self.cause = cause;
    }

    pub(super) fn refund_failed(&mut self, cause: &impl ToString) {
        self.refund_error = Some(cause.to_string());
    }

    pub(super) fn write(&self, status: u16, elapsed: Duration) {
        let endpoint = match self.endpoint {
            Some(Endpoint::Render) => "render",
            Some(Endpoint::Template) => "template",
            None => "none",
        };
        let mut line = format!(
            "platen-edge request_id={} endpoint={endpoint} status={status} ms={}",
            self.request_id,
            elapsed.as_millis()
        );
        let mut pair = |name: &str, value: &dyn Debug| {
            // Writing to a string cannot fail.
            let _ = write!(line, " {name}={value:?}");
        };
        if let Some(account) = &self.account {
            pair("account", &account.as_str());
        }
        if let Some(farm) = self.farm {
            pair("farm_ms", &farm.as_millis());
        }
        for (name, text) in
            [("error", &self.error), ("cause", &self.cause), ("refund_error", &self.refund_error)]
        {
            if let Some(text) = text {
                pair(name, text);
            }
        }
        line.push('\n');
        // One write, so that lines of concurrent requests do not mix. Nobody can be told if it fails.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// An attempt that could not be written down: the caller has the answer already.
pub(super) fn attempt_lost(request_id: &str, cause: &impl ToString) {
    let line = format!("platen-edge request_id={request_id} attempt_lost={:?}\n", cause.to_string());
    let _ = std::io::stderr().write_all(line.as_bytes());
}
