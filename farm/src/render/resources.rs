//! Waiting for the fonts, images and style sheets that a page draws.
//!
//! The `load` event does not wait for resources that only the layout requests, such as fonts and background
//! images of an external style sheet. Printing waits for them, and so does every other capture.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{load_state::reach, main_thread, rendering::Rendering, virtual_time::VirtualTimeDriver};
use crate::{
    begin_frames::{FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
};

/// How long resources are waited for. After the same time a browser shows text in a fallback font
/// (<https://drafts.csswg.org/css-fonts/#font-display-desc>).
pub(super) const RESOURCE_TIMEOUT: Duration = Duration::from_secs(3);
/// Frames that are run after resources have loaded; each may make the page request more.
const MAX_RESOURCE_FRAMES: u32 = 3;

/// Waits for the resources that are loading now, except those that were given up.
pub(super) async fn wait(rendering: &mut Rendering<'_>) {
    wait_until(rendering, rendering.until(RESOURCE_TIMEOUT)).await;
}

/// Draws what a script has changed, and waits for the resources that this needs.
pub(super) async fn show_changes(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if rendering.has_begin_frame_control() && !rendering.clock.in_virtual_time {
        main_thread::run_frame(rendering, FrameTime::Same).await?;
    }
    settle(rendering).await
}

/// Waits for the resources that are loading now and for those that the page requests in the frames after
/// that. Afterwards the page has had a frame with the loaded resources.
pub(super) async fn settle(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    let until = rendering.until(RESOURCE_TIMEOUT);
    for _ in 0..MAX_RESOURCE_FRAMES {
        if !rendering.load_state().requests.is_loading_drawn(rendering.given_up) {
            break;
        }
        if !rendering.clock.in_virtual_time {
            wait_until(rendering, until).await;
            if rendering.has_begin_frame_control() {
                main_thread::run_frame(rendering, FrameTime::Same).await?;
            } else {
                main_thread::metrics(rendering.session).await?;
            }
            continue;
        }
        // The page's clock is stopped until the requests have ended.
        let timeout_ms = until.saturating_duration_since(Instant::now()).as_secs_f64() * 1_000.0;
        VirtualTimeDriver::start(rendering).await?.step_with_callbacks(FRAME_INTERVAL_MS, timeout_ms).await?;
        if Instant::now() >= until {
            give_up(rendering);
        }
    }
    Ok(())
}

async fn wait_until(rendering: &mut Rendering<'_>, until: Instant) {
    let (latest, given_up) = (rendering.load_state().requests.sent, rendering.given_up);
    let loaded = reach(&mut rendering.state, |state| {
        state.requests.oldest_drawn.is_none_or(|oldest| oldest > latest)
            || !state.requests.is_loading_drawn(given_up)
    });
    if timeout_at(until, loaded).await.is_err() {
        give_up(rendering);
    }
}

/// Stops waiting for the requests that are in progress now.
fn give_up(rendering: &mut Rendering<'_>) {
    rendering.given_up = rendering.load_state().requests.sent;
}
