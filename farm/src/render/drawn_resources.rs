//! Waiting for what a page is drawn with: fonts, images and style sheets that it is loading.
//!
//! A `load` event does not wait for what only the layout requests, such as the fonts and backgrounds
//! that a style sheet of its own file names. Printing waits for them, and so does every other capture.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{JobError, load::reach, rendering::Rendering, stillness, virtual_time::VirtualTimeDriver};
use crate::begin_frames::{FRAME_INTERVAL, FrameTime};

/// How long they are waited for. After this time a browser shows text without its font, too
/// (<https://drafts.csswg.org/css-fonts/#font-display-desc>).
const TIMEOUT: Duration = Duration::from_secs(3);
/// How often a frame is run because something has come, which may make the page request more.
const MAX_FRAMES: u32 = 3;

/// Waits for what is being loaded now, unless it was waited for in vain before.
pub(super) async fn wait(rendering: &mut Rendering<'_>) {
    wait_until(rendering, Instant::now() + TIMEOUT).await;
}

/// Waits for what is being loaded now, and for what the page requests when that has come. Afterwards the
/// page has had a frame with it.
pub(super) async fn settle(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    let until = Instant::now() + TIMEOUT;
    for _ in 0..MAX_FRAMES {
        if !rendering.is_loading_drawn() {
            break;
        }
        if rendering.is_in_virtual_time() {
            // The page's clock stands still until they have come.
            let patience = until.saturating_duration_since(Instant::now()).as_secs_f64() * 1_000.0;
            VirtualTimeDriver::start(rendering).await?.step(FRAME_INTERVAL, patience).await?;
            if Instant::now() >= until {
                rendering.give_up_drawn();
            }
            continue;
        }
        wait_until(rendering, until).await;
        if rendering.draws_on_command() {
            rendering.frame(FrameTime::Same, true).await?;
        }
        stillness::metrics(rendering.session).await?;
    }
    Ok(())
}

async fn wait_until(rendering: &mut Rendering<'_>, until: Instant) {
    let (latest, given_up) = (rendering.load_state().sent, rendering.given_up);
    let have_come = reach(&mut rendering.state, |state| {
        state.oldest_drawn.is_none_or(|oldest| oldest > latest) || !state.is_loading_drawn(given_up)
    });
    if timeout_at(until, have_come).await.is_err() {
        rendering.give_up_drawn();
    }
}
