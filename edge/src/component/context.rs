//! The facts about one request, from which response headers, access log and the attempt's row are written.

use std::time::Instant;

use platen_component::{database::Database, platform};
use platen_shared::id::AccountId;
use platen_statements::attempts::{self, Attempt};
use spin_sdk::{wasip3::http::types::Fields, wit_bindgen};

use super::log::{self, AccessLog};
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
    /// Known once the claim has recorded an attempt. Status and duration are set at the end.
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
            attempt.counted = false;
        }
        if let Some(usage) = &mut self.usage {
            usage.attempts = usage.attempts.saturating_sub(1);
        }
    }

    /// Writes the access log now, and the attempt's row after the response has been sent: in a task, so that a
    /// slow or broken database does not delay the response.
    pub(super) fn finish(self, status: u16) {
        let (request_id, elapsed) = (self.trace.request_id, self.started.elapsed());
        self.log.write(&request_id, status, elapsed);
        let Some(mut attempt) = self.attempt else { return };
        attempt.status = status;
        attempt.ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        wit_bindgen::spawn(async move {
            let written = async { attempts::log(&Database::open().await?, &attempt).await }.await;
            if let Err(error) = written {
                log::attempt_lost(&request_id, &error);
            }
        });
    }
}
