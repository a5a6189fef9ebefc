//! The facts about one request, from which response headers, access log and the attempt's row are written.

use std::{
    pin::Pin,
    time::{Duration, Instant},
};

use platen_shared::{id::AccountId, limits, reason::Reason, wire};
use platen_spin::{background::Background, body::Transfer, platform};
use platen_statements::attempts::Attempt;
use spin_sdk::wasip3::http::types::Fields;

use super::{attempt_log, failure::Failure, log::AccessLog};
use crate::{
    deadline::Deadline,
    quota::{QuotaMonth, Usage},
    trace::Trace,
};

pub(super) struct RequestContext {
    started: Instant,
    /// How long the request waited in the server, if the server says so.
    pub(super) age: Option<Duration>,
    pub(super) deadline: Deadline,
    pub(super) trace: Trace,
    pub(super) month: QuotaMonth,
    /// Whether the server has seen a response to a valid key with this one.
    pub(super) was_key_valid: bool,
    /// Whether the key has been looked up, other than by a claim.
    pub(super) is_key_checked: bool,
    /// Whether it is for a link, whose responses say nothing about the account.
    pub(super) is_of_link: bool,
    /// Known once the key is authenticated; responses to such requests have `ratelimit` fields.
    pub(super) usage: Option<Usage>,
    /// The row that is written after the response: of a claimed attempt, or of a request with a valid key that was refused
    /// before the claim. Status, code and duration are set at the end.
    pub(super) attempt: Option<Attempt>,
    pub(super) log: AccessLog,
    pub(super) background: Background,
    /// What is done after the response, beside the row.
    pub(super) after_response: Option<Work>,
}

pub(super) type Work = Pin<Box<dyn Future<Output = ()>>>;

impl RequestContext {
    pub(super) fn new(headers: &Fields) -> Self {
        let started = Instant::now();
        let age = headers.get(wire::AGE_MS).into_iter().next();
        let age = age.and_then(|age| std::str::from_utf8(&age).ok()?.parse().ok()).map(Duration::from_millis);
        let timeout = Duration::from_millis(limits::RENDER_TIMEOUT_MS);
        Self {
            started,
            age,
            deadline: Deadline::new(started, timeout, age.unwrap_or_default()),
            trace: Trace::new(|name| headers.get(name).into_iter().next(), platform::random()),
            month: QuotaMonth::at(platform::now()),
            // On Spin it would be the caller's.
            was_key_valid: platform::is_platen_up() && headers.has(wire::VALID_KEY),
            is_key_checked: false,
            is_of_link: false,
            usage: None,
            attempt: None,
            log: AccessLog::default(),
            background: Background::start(),
            after_response: None,
        }
    }

    /// Applies the operator's deadline.
    pub(super) fn set_render_timeout(&mut self, timeout: Duration) {
        self.deadline = Deadline::new(self.started, timeout, self.age.unwrap_or_default());
    }

    pub(super) fn authenticated(&mut self, account: &AccountId, usage: Usage) {
        self.log.account = Some(account.clone());
        self.usage = Some(usage);
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn failed(&mut self, failure: Failure) {
        if let Some(attempt) = &mut self.attempt {
            attempt.code = Some(failure.error.reason().code());
            attempt.field = failure.error.known_field();
            (attempt.page_errors, attempt.failed_requests) = failure.error.page_counts();
        }
        self.log.failed(failure);
    }

    /// Passes the body of the response on, and then writes the access log and the attempt's row: in the background,
    /// so that a slow or broken database does not delay the response.
    pub(super) fn finish(self, mut status: u16, transfer: Option<Transfer>) {
        let (elapsed, ms) = (self.started.elapsed(), self.elapsed_ms());
        let Self { trace, mut attempt, log, background, after_response, .. } = self;
        if let Some(work) = after_response {
            background.run(work);
        }
        background.run(async move {
            let is_delivered = match transfer {
                Some(transfer) => transfer.await,
                None => true,
            };
            if let Some(attempt) = &mut attempt {
                if !is_delivered {
                    // The platform has dropped the response, because the caller has disconnected.
                    status = Reason::Cancelled.status();
                    attempt.code = Some(Reason::Cancelled.code());
                }
                attempt.status = status;
                attempt.ms = ms;
            }
            log.write(&trace.request_id, status, elapsed);
            if let Some(attempt) = attempt {
                attempt_log::add(attempt);
                attempt_log::flush().await;
            }
        });
    }
}
