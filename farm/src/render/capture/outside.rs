//! What is outside of the viewport of a page whose picture shows it.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    SetDeviceMetricsOverrideParams, SetPageScaleFactorParams,
};

use super::{
    super::{rendering::Rendering, resources},
    page_scripts,
};
use crate::{begin_frames::FrameTime, error::JobError};

/// Defines `own.outside`.
const OUTSIDE: &str = concat!("(", include_str!("outside.js"), ")()");
/// The factor by which a mobile device can be zoomed out.
const MAX_ZOOM: f64 = 10.0;
/// Frames that are run until frames of another origin are in view.
const MAX_FRAMES: u32 = 50;

/// Loads and shows what is outside of the viewport, apart from frames of another origin.
///
/// Chromium neither loads lazy images there, nor draws frames of another origin, the content of `content-visibility: auto`
/// and fixed backgrounds. A taller viewport would show them, but it changes the layout: `100vh` is taller, for example. On
/// a mobile device the viewport of scrolling may be larger than that of the layout, which shows the frames.
pub(super) async fn show(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    let changes = rendering.evaluate_isolated(&format!("{OUTSIDE}, own.outside.show()")).await?;
    if changes.is_some_and(|count| count != 0) {
        resources::show_changes(rendering).await?;
    }
    Ok(())
}

/// Makes the frames of another origin drawn that are above `bottom`, in CSS pixels, if there are some below the viewport.
/// Only a capture may follow.
pub(super) async fn show_frames(rendering: &mut Rendering<'_>, bottom: f64) -> Result<(), JobError> {
    if rendering.evaluate_isolated("own.outside.hasFrames()").await? != Some(true.into()) {
        return Ok(());
    }
    let (session, viewport) = (rendering.session, &rendering.job.options.viewport);
    page_scripts::disable_scripts(rendering).await?;
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
