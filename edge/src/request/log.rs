//! The log: one line for each request, and what was lost.
//!
//! Invariant: a line contains no key, body, header or path of a caller.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use platen_shared::{
    id::AccountId,
    log_line::{LogLevel, LogLine},
};
use platen_spin::platform;
use platen_statements::attempts::Attempt;

use super::failure::Failure;
use crate::api_error::ApiError;

/// The optional fields of the access log line.
#[derive(Default)]
pub(super) struct AccessLog {
    pub(super) endpoint: Option<&'static str>,
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
        self.code = Some(failure.error.reason().code());
        self.error = Some(match failure.error {
            ApiError::Invalid(_) => "Invalid request".to_owned(),
            ApiError::Refused { .. } => "Refused by the farm".to_owned(),
            other => other.to_string(),
        });
        self.cause = failure.cause;
    }

    pub(super) fn write(&self, request_id: &str, status: u16, elapsed: Duration) {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).ok();
        platform::log(&LogLine {
            level: if self.cause.is_some() { LogLevel::Warn } else { LogLevel::Info },
            message: "request".to_owned(),
            request_id: Some(request_id.to_owned()),
            endpoint: Some(self.endpoint.unwrap_or("none").to_owned()),
            account: self.account.as_ref().map(ToString::to_string),
            status: Some(status),
            ms: milliseconds(elapsed),
            farm_ms: self.farm_elapsed.and_then(milliseconds),
            code: self.code.map(str::to_owned),
            error: self.error.clone(),
            cause: self.cause.clone(),
            ..LogLine::default()
        });
    }
}

/// Reports that attempts stay counted that were claimed ahead and not used.
pub(super) fn attempts_not_given_back(cause: &str) {
    platform::log(&LogLine {
        level: LogLevel::Error,
        message: "attempts that were claimed ahead were not given back".to_owned(),
        cause: Some(cause.to_owned()),
        ..LogLine::default()
    });
}

/// Reports attempts whose rows could not be written. Those that were to be refunded count, and have a line each.
pub(super) fn attempts_lost(attempts: &[Attempt], cause: &str) {
    static LOST: AtomicUsize = AtomicUsize::new(0);
    if attempts.is_empty() {
        return;
    }
    let line = |message: &str| LogLine {
        level: LogLevel::Error,
        message: message.to_owned(),
        cause: Some(cause.to_owned()),
        ..LogLine::default()
    };
    for attempt in attempts.iter().filter(|attempt| attempt.refunded_month.is_some()) {
        let request_id = Some(attempt.request_id.clone());
        platform::log(&LogLine { request_id, ..line("an attempt was not refunded") });
    }
    let lost = attempts.len();
    let lost_in_all = LOST.fetch_add(lost, Ordering::Relaxed) + lost;
    platform::log(&LogLine {
        attempts: Some(lost),
        attempts_in_all: Some(lost_in_all),
        ..line("rows of attempts were lost")
    });
}
