//! Attempts of accounts with a limit of requests at once, while they run.
//!
//! Invariant: an attempt counts from its claim until the farm has answered. Its row in the log ends it too, so a statement
//! that fails here has no consequence; after a crash of the edge it counts until its time is over.

use std::time::{Duration, Instant};

use platen_spin::{database::Database, platform};
use platen_statements::{
    attempts::{Attempt, Claim},
    limits::{self, RunningAttempt},
};

use super::context::RequestContext;

/// For what a farm does after the deadline of a job.
const MARGIN: Duration = Duration::from_secs(5);
/// A response does not wait longer for a database that does not answer.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The attempt for its claim.
pub(super) fn running_attempt(attempt: &Attempt, context: &RequestContext) -> RunningAttempt {
    let time = context.deadline.answer_time_left(Instant::now()) + MARGIN;
    RunningAttempt { id: attempt.id, max_seconds: time.as_secs() + 1 }
}

/// Ends an attempt that its account may run a limited number of. The response waits for it, so that the client's next
/// request finds the place free.
pub(super) async fn end_attempt(claim: &Claim, context: &mut RequestContext) {
    let Some(limits) = context.usage.as_mut().and_then(|usage| usage.limits.as_mut()) else { return };
    let Some(attempt) = context.attempt.as_ref().filter(|_| limits.concurrency.is_some()) else { return };
    limits.running = limits.running.saturating_sub(1);
    let end = limits::end(&Database, &claim.account, attempt.id);
    _ = platform::timeout(END_TIMEOUT, end).await;
}
