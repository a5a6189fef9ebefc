//! Animations at their end: CSS animations, transitions and Web Animations.
//!
//! Those that run by time and end are finished, and so are those that their end events start. Those of a view timeline
//! are as when their element is in the middle of its scroll container. Paused ones, endless ones and those of a scroll
//! timeline are left as they are, and so is what scripts draw frame by frame.
//!
//! Invariant: a page without scripts and animations has neither a command nor a frame for this.

use std::time::Duration;

use platen_shared::job::Animations;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    main_thread,
    rendering::Rendering,
    virtual_time::{REQUEST_TIMEOUT_MS, VirtualTimeDriver},
};
use crate::{
    begin_frames::{FRAME_DURATION, FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
};

/// Finishes the animations of a document, and returns [`RUNNING`] if there were some, else [`PREPARED`] or 0.
const FINISH: &str = concat!("(", include_str!("finish_animations.js"), ")()");
/// Animations that ran are finished.
const RUNNING: u64 = 2;
/// A view transition is prepared, whose animations begin when the compositor has sent pictures.
const PREPARED: u64 = 1;
/// How often animations are finished of which each was started by the end of another.
const MAX_ROUNDS: u32 = 8;
/// Frames after the end of an animation in which a script may start another one: an end event in the first one, and
/// animation-frame callbacks of two further ones, with which libraries separate the styles of a transition.
const FRAMES_PER_ROUND: u32 = 3;
/// How long a view transition may be prepared in real time. Chromium skips one whose document is not ready by then.
const MAX_PREPARATION: Duration = Duration::from_secs(4);

/// Brings the animations of the page and its frames to their end, if the job wants that.
pub(super) async fn finish(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if rendering.job.options.animations == Animations::Allow {
        return Ok(());
    }
    // Nothing but a script notices the end of an animation.
    let script_ran = rendering.scripts.ran;
    let mut rounds = 0;
    let mut quiet_frames = FRAMES_PER_ROUND;
    let prepared = Instant::now() + MAX_PREPARATION;
    while (script_ran || rendering.load_state().activity.animations > 0) && rounds < MAX_ROUNDS {
        match finish_all(rendering).await? {
            RUNNING => (rounds, quiet_frames) = (rounds + 1, 0),
            PREPARED if Instant::now() < prepared => sleep(FRAME_DURATION).await,
            _ if !script_ran || quiet_frames >= FRAMES_PER_ROUND => break,
            _ => quiet_frames += 1,
        }
        frame(rendering).await?;
    }
    Ok(())
}

/// Finishes what runs now, in all frames. Returns the largest result of [`FINISH`].
async fn finish_all(rendering: &mut Rendering<'_>) -> Result<u64, JobError> {
    let found = rendering.evaluate_in_frames(FINISH).await?;
    Ok(found.iter().filter_map(Value::as_u64).max().unwrap_or_default())
}

/// A frame in which the page notices what has ended or changed.
pub(super) async fn frame(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if rendering.clock.in_virtual_time {
        let mut driver = VirtualTimeDriver::start(rendering).await?;
        return driver.step_with_callbacks(FRAME_INTERVAL_MS, REQUEST_TIMEOUT_MS).await;
    }
    if rendering.has_begin_frame_control() {
        return main_thread::run_frame(rendering, FrameTime::Same).await;
    }
    sleep(FRAME_DURATION).await;
    Ok(())
}
