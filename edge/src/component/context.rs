//! The facts about one request, from which response headers, access log and the attempt's row are written.

use std::time::{Duration, Instant};

use platen_component::{background::Background, body::Transfer, database::Database, platform};
use platen_shared::{failure::FailureClass, id::AccountId};
use platen_statements::attempts::{self, Attempt};
use spin_sdk::wasip3::http::types::Fields;

use super::log::{self, AccessLog};
use crate::{
    quota::{QuotaMonth, Usage},
    trace::Trace,
};

/// The database for refunds and the rows of attempts, for which the response does not wait.
pub(super) const RECORDS: Database = Database::new(Duration::from_mins(1));

pub(super) struct RequestContext {
    pub(super) started: Instant,
    pub(super) trace: Trace,
    pub(super) month: QuotaMonth,
    /// Known once the key is authenticated; responses to such requests have `ratelimit` fields.
    pub(super) usage: Option<Usage>,
    /// Known once the claim has recorded an attempt. Id, status and duration are set at the end.
    pub(super) attempt: Option<Attempt>,
    pub(super) log: AccessLog,
    pub(super) background: Background,
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
            background: Background::start(),
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

    /// Passes the body of the response on, and then writes the access log and the attempt's row: in the background,
    /// so that a slow or broken database does not delay the response.
    pub(super) fn finish(self, mut status: u16, transfer: Option<Transfer>) {
        let Self { started, trace, mut attempt, log, background, .. } = self;
        let elapsed = started.elapsed();
        background.run(async move {
            let is_delivered = match transfer {
                Some(transfer) => transfer.await,
                None => true,
            };
            if let Some(attempt) = &mut attempt {
                if !is_delivered {
                    // The platform has dropped the response, because the caller has disconnected.
                    status = FailureClass::Cancelled { page_ran: true }.status();
                }
                attempt.id = attempts::attempt_id(platform::now_ms(), platform::random());
                attempt.status = status;
                attempt.ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
            }
            log.write(&trace.request_id, status, elapsed);
            let Some(attempt) = attempt else { return };
            if let Err(error) = attempts::log(&RECORDS, &attempt).await {
                log::attempt_lost(&trace.request_id, &error);
            }
        });
    }
}
