//! Scrolling through a part of the page before its capture, as a person does.
//!
//! Scripts load pictures and show sections when these come into view. Without a script of the page nothing does, apart
//! from lazy images, which are loaded in any case.

use std::time::Duration;

use tokio::time::timeout;

use super::super::{
    drawn_resources,
    job_error::JobError,
    main_thread_frame,
    rendering::{Rendering, unless_refused},
    virtual_time::VirtualTimeDriver,
};
use crate::begin_frames::{FRAME_INTERVAL_MS, FrameTime};

/// Steps through a part of a page: more than an image of 100 megapixels has at the usual size of the viewport.
const MAX_STEPS: f64 = 120.0;
/// How long requests may stop the page's clock in a step, and how long a browser that draws by itself may take for one.
const STEP_TIMEOUT: Duration = Duration::from_secs(1);
/// Ends after the callbacks for what is in view.
const NEXT_FRAME: &str =
    "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))";
/// Remembers the position and the animations of the page.
const BEGIN: &str =
    "void (own.scroll = { left: scrollX, top: scrollY, animations: new Set(document.getAnimations()) })";
/// Back to the first position.
const BACK: &str = "scrollTo({ ...own.scroll, behavior: 'instant' })";
/// Animations that have begun since then, such as of sections that fade in, are shown at their end. Endless ones cannot
/// be, and are left as they are.
const FINISH: &str = "(() => { let finished = 0; for (const animation of document.getAnimations())\
    if (!own.scroll.animations.has(animation) && animation.timeline === document.timeline)\
    try { animation.finish(); finished++ } catch {} return finished })()";

/// Scrolls from one height of the page to another in steps of a viewport, and back. All are in CSS pixels.
pub(super) async fn through(
    rendering: &mut Rendering<'_>,
    from: f64,
    to: f64,
    viewport_height: f64,
) -> Result<(), JobError> {
    rendering.evaluate_isolated(BEGIN).await?;
    let step = viewport_height.max((to - from) / MAX_STEPS);
    let mut top = from;
    while top < to {
        rendering.evaluate_isolated(&format!("scrollTo({{ top: {top}, behavior: 'instant' }})")).await?;
        frame(rendering).await?;
        top += step;
    }
    rendering.evaluate_isolated(BACK).await?;
    frame(rendering).await?;
    drawn_resources::settle(rendering).await?;
    if rendering.evaluate_isolated(FINISH).await?.is_some_and(|finished| finished != 0) {
        frame(rendering).await?;
    }
    Ok(())
}

/// The page's callbacks for what is in view.
async fn frame(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if rendering.in_virtual_time {
        let timeout_ms = STEP_TIMEOUT.as_secs_f64() * 1_000.0;
        return VirtualTimeDriver::start(rendering)
            .await?
            .step_with_callbacks(FRAME_INTERVAL_MS, timeout_ms)
            .await;
    }
    if rendering.has_begin_frame_control() {
        return main_thread_frame::run(rendering, FrameTime::Same).await;
    }
    let Some(mut next) = rendering.script(NEXT_FRAME).await? else { return Ok(()) };
    next.await_promise = Some(true);
    match timeout(STEP_TIMEOUT, rendering.session.call(&next)).await {
        Ok(answer) => unless_refused(answer.map_err(JobError::from)).map(drop),
        Err(_) => Ok(()),
    }
}
