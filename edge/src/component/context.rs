//! The facts about one request, from which response headers, access log and the attempt's row are written.

use std::time::Instant;

use platen_component::platform;
use platen_shared::id::AccountId;
use spin_sdk::wasip3::http::types::Fields;

use super::{attempt::Attempt, log::AccessLog};
use crate::{
    quota::{QuotaMonth, Usage},
    trace::Trace,
};

pub(super) struct RequestContext {
    pub(super) started: Instant,
    pub(super) trace: Trace,
    pub(super) month: QuotaMonth,
    /// Known once the key is authenticated; responses to such requests have `ratelimit` fields.
    pub(super) usage: Option<Usage>,
    /// Known once the claim has recorded an attempt.
    pub(super) attempt: Option<Attempt>,
    pub(super) log: AccessLog,
}

impl RequestContext {
    pub(super) fn new(headers: &Fields) -> Self {
        Self {
            started: Instant::now(),
            trace: Trace::new(|name| headers.get(name).into_iter().next(), platform::random()),
            month: QuotaMonth::at(platform::now()),
            usage: None,
            attempt: None,
            log: AccessLog::default(),
        }
    }

    pub(super) fn authenticated(&mut self, account: &AccountId, usage: Usage) {
        self.log.account = Some(account.clone());
        self.usage = Some(usage);
    }

    pub(super) fn refunded(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.entry.counted = false;
        }
        if let Some(usage) = &mut self.usage {
            usage.attempts = usage.attempts.saturating_sub(1);
        }
    }

    /// Writes the access log now, and the attempt's row after the response has been sent.
    pub(super) fn finish(self, status: u16) {
        self.log.write(&self.trace.request_id, status, self.started.elapsed());
        if let Some(attempt) = self.attempt {
            attempt.write_later(status, self.started);
        }
    }
}
