//! The conditions of a job: an element that is to be visible, and an expression that is to be true.

use std::time::Duration;

use platen_shared::refusal::Refusal;
use tokio::time::Instant;

use super::{elements, remaining_wait::RemainingWait, rendering::Rendering, script};
use crate::error::JobError;

/// The time before the deadline at which a condition that is not true is reported, which is more useful than that the time is
/// over.
const CONDITION_RESERVE: Duration = Duration::from_secs(1);
/// Checks the conditions that the wait still needs, which must be true at once.
///
/// # Errors
/// The refusal for the one that is not true when their time is over, in the page's time or in real time.
pub(super) async fn check(rendering: &mut Rendering<'_>, left: &mut RemainingWait) -> Result<(), JobError> {
    let Some(left_ms) = left.condition_ms else { return Ok(()) };
    let options = &rendering.job.options;
    let unmet = match (&options.wait_for_selector, &options.wait_for_function) {
        (Some(selector), _) if !elements::is_visible(rendering, selector).await? => {
            Refusal::ElementNotVisible
        }
        (_, Some(function)) if !script::is_true(rendering, function).await? => Refusal::FunctionNotTrue,
        _ => {
            left.condition_ms = None;
            return Ok(());
        }
    };
    if left_ms <= 0.0 || Instant::now() + CONDITION_RESERVE >= rendering.deadline {
        return Err(JobError::Refused(unmet));
    }
    Ok(())
}
