//! Waiting for the milestone of the job, and then for its time.
//!
//! A plan says how the wait passes (`wait_plan`), and `waits` has a function for each plan.

use super::{
    animations, main_thread,
    remaining_wait::RemainingWait,
    rendering::Rendering,
    resources,
    wait_plan::{self, Awaited, WaitPlan},
    waits::Wait,
};
use crate::{error::JobError, metrics::Waiting};

/// Stops the blinking of the text caret. It blinks every 500 ms, a common length of waits, so whether a picture shows it would
/// vary.
const SHOW_CARET: &str = concat!("(", include_str!("show_caret.js"), ")()");

/// Waits until the network is idle, if that is the milestone, and then for `wait_ms`. Afterwards the
/// page has had its animation-frame, resize and intersection callbacks. Returns whether nothing is open that a wait for the
/// network to be idle has left out.
pub(super) async fn settle(rendering: &mut Rendering<'_>, wait_ms: f64) -> Result<bool, JobError> {
    let awaited = rendering.awaited(wait_ms);
    let mut wait = Wait { left: RemainingWait::new(rendering, wait_ms), rendering };
    let waiting = pass(&mut wait, awaited).await?;
    let Wait { left, rendering } = wait;
    let is_picture = rendering.needs_frame();
    if is_picture && waiting.is_some_and(|waiting| waiting != Waiting::Skipped) {
        rendering.evaluate_isolated(SHOW_CARET).await?;
    }
    animations::finish(rendering).await?;
    // Printing waits for resources itself.
    if is_picture && rendering.waits_for_resources() {
        resources::settle(rendering).await?;
    }
    if let Some(waiting) = waiting {
        rendering.pooled.metrics.waits.of(waiting).inc();
    }
    Ok(left.is_complete(&rendering.load_state()))
}

/// Returns how the wait passed; `None` if there was nothing to wait for.
async fn pass(wait: &mut Wait<'_, '_>, awaited: Awaited) -> Result<Option<Waiting>, JobError> {
    note_scripts(wait.rendering, awaited).await?;
    loop {
        let facts = wait_plan::facts(wait.rendering, awaited).await?;
        match facts.plan() {
            WaitPlan::None => {
                wait.first_frame(false).await?;
                return Ok(None);
            }
            WaitPlan::Skip if wait.skip().await? => return Ok(Some(Waiting::Skipped)),
            WaitPlan::Real => {
                if facts.acts() {
                    wait.first_frame(true).await?;
                }
                wait.pass_real_time().await?;
                if wait.left.is_over() {
                    return Ok(Some(Waiting::RealTime));
                }
            }
            WaitPlan::Skip | WaitPlan::Virtual => return wait.pass_virtual_time().await.map(Some),
        }
    }
}

/// Notes whether a script of the page has run up to the milestone, and counts the frames of its document.
async fn note_scripts(rendering: &mut Rendering<'_>, awaited: Awaited) -> Result<(), JobError> {
    let on_command = rendering.has_begin_frame_control();
    if on_command && awaited == Awaited::Nothing {
        // The file shows the page as it has loaded, however long the capture takes. The main thread answers the
        // next command after this one; a frame could overtake it, and animations would start to move.
        rendering.pause_animations()?;
    }
    let loaded = main_thread::metrics(rendering.session).await?;
    rendering.check_navigation()?;
    rendering.scripts.ran = loaded.has_run_since(rendering.scripts.time_before)
        || if on_command {
            // Another document may be one of another renderer, with metrics of its own.
            rendering.load_state().document.number > 1
        } else {
            rendering.job.options.wait_for_function.is_some()
        };
    rendering.count_frames_from(loaded.navigation_start * 1_000.0);
    Ok(())
}
