//! Creating the file: an image or a PDF.

mod image;
mod pdf;
mod scroll;

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    SetDeviceMetricsOverrideParams, SetPageScaleFactorParams, SetScriptExecutionDisabledParams,
};
use platen_shared::job::Output;

use super::{main_thread, prepare, rendering::Rendering, resources};
use crate::{begin_frames::FrameTime, error::JobError};

/// Captures the page in its current state.
pub(super) async fn capture(rendering: &mut Rendering<'_>) -> Result<Bytes, JobError> {
    let options = &rendering.job.options;
    if let Some(css) = &options.css
        && prepare::put_style_last(rendering, css).await?
        && matches!(options.output, Output::Image(_))
    {
        resources::show_changes(rendering).await?;
    }
    match &options.output {
        Output::Image(image) => image::capture(rendering, image).await,
        Output::Pdf(pdf) => {
            last_frame(rendering).await?;
            let viewport_height = f64::from(options.viewport.height.get());
            if is_scrolled(rendering) {
                let (_, height) = scroll::content_size(rendering).await?;
                if height > viewport_height {
                    scroll::through(rendering, viewport_height, height, true).await?;
                }
            }
            pdf::capture(rendering, pdf).await
        }
    }
}

/// Runs the frame for the scripts of the page that a picture of the viewport is taken in, before another capture.
async fn last_frame(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if !rendering.scripts.ran || !rendering.has_begin_frame_control() {
        return Ok(());
    }
    if rendering.clock.in_virtual_time {
        return rendering.frame(FrameTime::After(0.0), true).await.map(drop);
    }
    main_thread::run_frame(rendering, FrameTime::After(0.0)).await
}

/// Whether the page is scrolled through before its capture. Without a script of the page nothing notices that.
fn is_scrolled(rendering: &Rendering<'_>) -> bool {
    rendering.scripts.ran && rendering.job.options.scroll
}

/// Defines `own.outside`.
const OUTSIDE: &str = concat!("(", include_str!("capture/outside.js"), ")()");
/// The factor by which a mobile device can be zoomed out.
const MAX_ZOOM: f64 = 10.0;
/// Frames that are run until frames of another origin are in view.
const MAX_FRAMES: u32 = 50;

/// Loads and shows what is outside of the viewport, apart from frames of another origin.
///
/// Chromium neither loads lazy images there, nor draws frames of another origin, the content of `content-visibility: auto`
/// and fixed backgrounds. A taller viewport would show them, but it changes the layout: `100vh` is taller, for example. On
/// a mobile device the viewport of scrolling may be larger than that of the layout, which shows the frames.
async fn show_outside(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    let changes = rendering.evaluate_isolated(&format!("{OUTSIDE}, own.outside.show()")).await?;
    if changes.is_some_and(|count| count != 0) {
        resources::show_changes(rendering).await?;
    }
    Ok(())
}

/// Keeps the look of a page with scripts in one of its documents.
const KEEP_SCRIPTED: &str = concat!("(", include_str!("capture/keep_scripted.js"), ")()");

/// Ends the scripts of the page, which must not see how a capture changes it: they would change the content. The next job must
/// not see that either. Only a capture may follow.
async fn disable_scripts(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    rendering.must_close = true;
    if rendering.scripts.enabled {
        rendering.evaluate_in_frames(KEEP_SCRIPTED).await?;
        set_scripts(rendering, false).await?;
    }
    Ok(())
}

async fn set_scripts(rendering: &mut Rendering<'_>, run: bool) -> Result<(), JobError> {
    rendering.scripts.enabled = run;
    rendering.wait_for_page(rendering.session.call(&SetScriptExecutionDisabledParams::new(!run))).await?;
    Ok(())
}

/// Makes the frames of another origin drawn that are above `bottom`, in CSS pixels, if there are some below the viewport.
/// Only a capture may follow.
async fn show_outside_frames(rendering: &mut Rendering<'_>, bottom: f64) -> Result<(), JobError> {
    if rendering.evaluate_isolated("own.outside.hasFrames()").await? != Some(true.into()) {
        return Ok(());
    }
    let (session, viewport) = (rendering.session, &rendering.job.options.viewport);
    disable_scripts(rendering).await?;
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
