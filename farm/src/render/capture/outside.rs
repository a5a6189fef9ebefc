//! What is outside of the viewport, for an image that shows it.
//!
//! Chromium neither loads lazy images there, nor draws frames of another origin, the content of `content-visibility: auto`
//! and fixed backgrounds. A taller viewport would show them, but it changes the layout: `100vh` is taller, for example. On
//! a mobile device the viewport of scrolling may be larger than that of the layout, which shows the frames.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    SetDeviceMetricsOverrideParams, SetPageScaleFactorParams, SetScriptExecutionDisabledParams,
};
use platen_shared::job::Viewport;

use super::super::{drawn_resources, job_error::JobError, main_thread_frame, rendering::Rendering};
use crate::begin_frames::FrameTime;

/// Defines `own.outside`.
const SCRIPT: &str = include_str!("outside.js");
/// By how much a mobile device can be zoomed out.
const MAX_ZOOM: f64 = 10.0;
/// Frames that are run until frames of another origin are in view.
const MAX_FRAMES: u32 = 50;

/// Loads and shows what is outside of the viewport, apart from frames of another origin.
pub(super) async fn show(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    let changes = rendering.evaluate_isolated(&format!("{SCRIPT}, own.outside.show()")).await?;
    if changes.is_some_and(|count| count != 0) {
        show_changes(rendering).await?;
    }
    Ok(())
}

/// Draws what a script has changed, and waits for the resources that this needs.
pub(super) async fn show_changes(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if rendering.has_begin_frame_control() && !rendering.in_virtual_time {
        main_thread_frame::run(rendering, FrameTime::Same).await?;
    }
    drawn_resources::settle(rendering).await
}

/// Makes the frames of another origin drawn that are above `bottom`, in CSS pixels, if there are some below the viewport.
/// Only a capture may follow.
pub(super) async fn show_frames(
    rendering: &mut Rendering<'_>,
    viewport: &Viewport,
    bottom: f64,
) -> Result<(), JobError> {
    if rendering.evaluate_isolated("own.outside.hasFrames()").await? != Some(true.into()) {
        return Ok(());
    }
    let session = rendering.session;
    // The page is changed in a way that its next job must not see, and that its scripts must not see.
    rendering.must_close = true;
    rendering.runs_scripts = false;
    session.call(&SetScriptExecutionDisabledParams::new(true)).await?;
    let height = f64::from(viewport.height.get());
    let scale = (bottom / height / MAX_ZOOM).ceil().clamp(1.0, MAX_ZOOM);
    rendering.evaluate_isolated(&format!("own.outside.keepLayout({scale})")).await?;
    #[expect(clippy::cast_possible_truncation, reason = "it is at most 76,800")]
    let side = |side: u32| (f64::from(side) * scale) as i64;
    let (width, height) = (side(viewport.width.get()), side(viewport.height.get()));
    let factor = viewport.device_scale_factor.get();
    session.call(&SetDeviceMetricsOverrideParams::new(width, height, factor, true)).await?;
    session.call(&SetPageScaleFactorParams::new(1.0)).await?;
    for _ in 0..MAX_FRAMES {
        if rendering.has_begin_frame_control() {
            rendering.frame(FrameTime::Same, false).await?;
        }
        if rendering.evaluate_isolated("own.outside.isInView()").await? != Some(false.into()) {
            break;
        }
    }
    Ok(())
}
