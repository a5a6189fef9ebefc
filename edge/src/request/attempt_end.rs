//! The end of an attempt that was recorded: of one that counts, and of one that is refunded.

use std::time::{Duration, Instant};

use platen_shared::reason::Reason;
use platen_spin::{
    database::{Database, DatabaseError},
    platform,
};
use platen_statements::{
    attempts::{Attempt, Claim},
    limits,
};

use super::{ahead::Recorded, attempt_log, context::RequestContext, failure::Failure};

/// The time for which a response waits for a database that does not answer.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Ends an attempt that its account may run a limited number of. The response waits for it, so that the client's next
/// request finds the place free. The attempt's row ends it too, so a statement that fails here has no consequence.
pub(super) async fn end_attempt(claim: &Claim, context: &mut RequestContext) {
    let Some(limits) = context.usage.as_mut().and_then(|usage| usage.limits.as_mut()) else { return };
    let Some(attempt) = context.attempt.as_ref().filter(|_| limits.concurrency.is_some()) else { return };
    limits.running = limits.running.saturating_sub(1);
    let end = limits::end(&Database, &claim.account, attempt.id);
    _ = platform::timeout(END_TIMEOUT, end).await;
}

/// Takes the attempt back: a row says so, and a trigger of the schema does it. The response waits for it, so that the
/// next request finds the quota right, but not if the database is not available.
pub(super) async fn refund(claim: &Claim, failure: &Failure, context: &mut RequestContext) {
    let Some(mut attempt) = context.attempt.take() else { return };
    if let Some(usage) = &mut context.usage {
        usage.attempts = usage.attempts.saturating_sub(1);
        if let Some(limits) = &mut usage.limits {
            limits.running = limits.running.saturating_sub(1);
        }
    }
    let id = attempt.id;
    attempt.status = failure.error.reason().status();
    attempt.code = Some(failure.error.reason().code());
    attempt.field = failure.error.known_field();
    attempt.ms = context.elapsed_ms();
    attempt.counted = false;
    attempt.refunded_month = Some(claim.month.clone());
    attempt_log::add(attempt);
    context.background.run(attempt_log::flush());
    attempt_log::until_written(id, context.deadline.answer_time_left(Instant::now())).await;
}

/// Takes an attempt back that the database records only now, after the request has been refused.
pub(super) fn refund_late(
    recorded: impl Future<Output = Result<Option<Recorded>, DatabaseError>> + 'static,
    mut attempt: Attempt,
    context: &RequestContext,
) {
    attempt.status = Reason::DatabaseUnavailable.status();
    attempt.code = Some(Reason::DatabaseUnavailable.code());
    attempt.ms = context.elapsed_ms();
    context.background.run(async move {
        let Ok(Some(Recorded { claim, granted })) = recorded.await else { return };
        attempt.account_id = claim.account;
        attempt.refunded_month = Some(claim.month);
        attempt_log::add(attempt);
        attempt_log::flush().await;
        if let Some(granted) = granted {
            granted.give_back_others().await;
        }
    });
}
