//! An image of the viewport, of the whole page, of an element or of a rectangle.
//!
//! Invariant: a picture has exactly the requested size in device pixels. If that is not allowed, the job is
//! refused before Chromium draws it.

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        headless_experimental::{ScreenshotParams, ScreenshotParamsFormat},
        page::{CaptureScreenshotFormat, CaptureScreenshotParams, Viewport as Clip},
    },
    js_protocol::runtime::EvaluateParams,
};
use platen_shared::{
    format::ImageFormat,
    job::{DeviceScaleFactor, ImageOptions, Region, Viewport},
    limits,
    refusal::Refusal,
};

use super::{
    super::{
        elements::{self, Rectangle},
        frame_loop, main_thread,
        rendering::Rendering,
    },
    outside,
    page_scripts::{KEEP_SCRIPTED, set_scripts},
    picture_plan::{Command, Outside, PictureFacts},
    scroll,
};
use crate::{begin_frames::FrameTime, error::JobError};

/// Defines `own.resized`.
const RESIZED: &str = concat!("(", include_str!("resized.js"), ")()");
/// Frames to draw before a screenshot until one of them has changed the picture.
const MAX_FRAMES_BEFORE_SCREENSHOT: u32 = 3;
/// Frames that may be returned without a picture. Two attempts have always been enough.
const MAX_SCREENSHOT_ATTEMPTS: u32 = 8;

/// Captures an image of the page in its current state.
pub(super) async fn capture(rendering: &mut Rendering<'_>, image: &ImageOptions) -> Result<Bytes, JobError> {
    let viewport = rendering.job.options.viewport;
    let facts = PictureFacts {
        region: &image.region,
        viewport,
        has_begin_frame_control: rendering.has_begin_frame_control(),
        has_changed: rendering.document.changes > 1,
        is_scrolled: scroll::is_scrolled(rendering),
    };
    let plan = facts.plan();
    if plan.command != Command::Frame {
        main_thread::run_last_frame(rendering).await?;
    }
    let area = prepare(rendering, &image.region, plan.outside).await?;
    let picture = in_device_pixels(area, viewport.device_scale_factor);
    allow(rendering, picture, image.format)?;
    if plan.command == Command::Frame {
        return screenshot_frame(rendering, image).await;
    }
    if area.bottom() > viewport.height.get().into() {
        outside::show_frames(rendering, area.bottom()).await?;
    }
    let clip = (plan.command == Command::Clip).then(|| clip(picture, viewport.device_scale_factor));
    screenshot(rendering, &screenshot_command(image, clip)).await
}

/// Prepares what the picture shows outside of the viewport, and measures the region in CSS pixels.
async fn prepare(
    rendering: &mut Rendering<'_>,
    region: &Region,
    outside: Outside,
) -> Result<Rectangle, JobError> {
    if outside != Outside::Nothing {
        outside::show(rendering).await?;
    }
    let area = measure(rendering, region).await?;
    let viewport = viewport(rendering);
    if outside != Outside::Scrolled || area.bottom() <= viewport.height {
        return Ok(area);
    }
    let is_page = *region == Region::FullPage;
    let to = if is_page { area.height } else { area.bottom().min(content(rendering).await?.height) };
    let seen = scroll::through(rendering, viewport.height, to, is_page).await?;
    outside::show(rendering).await?;
    let mut scrolled = measure(rendering, region).await?;
    if is_page && seen > area.height {
        scrolled.height = scrolled.height.min(seen);
    }
    Ok(scrolled)
}

async fn measure(rendering: &mut Rendering<'_>, region: &Region) -> Result<Rectangle, JobError> {
    match region {
        Region::Viewport => Ok(viewport(rendering)),
        Region::FullPage => content(rendering).await,
        Region::Element(selector) => elements::border_box(rendering, selector).await,
        Region::Clip(clip) => Ok(Rectangle {
            left: clip.x.pixels(),
            top: clip.y.pixels(),
            width: clip.width.pixels(),
            height: clip.height.pixels(),
        }),
    }
}

fn viewport(rendering: &Rendering<'_>) -> Rectangle {
    let Viewport { width, height, .. } = rendering.job.options.viewport;
    Rectangle { left: 0.0, top: 0.0, width: width.get().into(), height: height.get().into() }
}

/// The viewport and what overflows it to the right and below.
async fn content(rendering: &Rendering<'_>) -> Result<Rectangle, JobError> {
    let (width, height) = scroll::content_size(rendering).await?;
    let viewport = viewport(rendering);
    Ok(Rectangle { width: viewport.width.max(width), height: viewport.height.max(height), ..viewport })
}

/// Allows the browser the memory of a picture of this size in device pixels.
fn allow(rendering: &Rendering<'_>, picture: Rectangle, format: ImageFormat) -> Result<(), JobError> {
    if !fits(picture.width, picture.height, format) {
        return Err(JobError::Refused(Refusal::PageTooLarge));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the limit")]
    rendering.pooled.browser.allow_picture((picture.width * picture.height) as u64);
    Ok(())
}

/// A rectangle of device pixels as Chromium takes it, in CSS pixels.
fn clip(picture: Rectangle, factor: DeviceScaleFactor) -> Clip {
    let css = |device: f64| device / factor.get();
    Clip {
        x: css(picture.left),
        y: css(picture.top),
        width: css(picture.width),
        height: css(picture.height),
        scale: 1.0,
    }
}

fn screenshot_command(image: &ImageOptions, clip: Option<Clip>) -> CaptureScreenshotParams {
    CaptureScreenshotParams {
        format: Some(encodings(image.format).1),
        quality: quality(image),
        optimize_for_speed: Some(image.optimize_for_speed),
        // A taller viewport instead would change elements that are sized by the viewport.
        capture_beyond_viewport: clip.is_some().then_some(true),
        clip,
        ..Default::default()
    }
}

fn quality(image: &ImageOptions) -> Option<i64> {
    (image.format != ImageFormat::Png).then_some(image.quality.get().into())
}

/// Captures more than a frame shows. The page does not see how it changes, and what that has started is over before it is drawn.
async fn screenshot(
    rendering: &mut Rendering<'_>,
    capture: &CaptureScreenshotParams,
) -> Result<Bytes, JobError> {
    // A page that navigates without end has its scripts: they would be missing in the next document.
    let stops_scripts =
        rendering.scripts.ran && rendering.scripts.enabled && rendering.document.follows_navigation;
    if stops_scripts {
        rendering.check_navigation()?;
        rendering.evaluate_in_frames(KEEP_SCRIPTED).await?;
    }
    let beyond = capture.clip.is_some();
    if beyond && rendering.load_state().activity.animations > 0 {
        rendering.evaluate_in_frames(&format!("{RESIZED}, own.resized.keep()")).await?;
    }
    let mut capturing = rendering.session.start(capture)?;
    if beyond {
        // Chromium first gives the page the size 1 × 1, and calculates its style and layout. The main thread answers when it has had
        // the next size as well, before it has a frame.
        rendering.evaluate_in_frames(&format!("{RESIZED}, own.resized.restore()")).await?;
    }
    if stops_scripts {
        // Scripts have no frame from here on: their number depends on the machine, and the page has had events of the sizes. Not
        // before, because a `<canvas>` that comes back while scripts are disabled shows its fallback content.
        set_scripts(rendering, false).await?;
    }
    let file = frame_loop::while_capturing(rendering, capturing.reply()).await?.into_file()?;
    if stops_scripts {
        set_scripts(rendering, true).await?;
    }
    file.ok_or(JobError::NoFile)
}

/// The nearest rectangle of whole device pixels, which is at least one wide and high.
fn in_device_pixels(area: Rectangle, factor: DeviceScaleFactor) -> Rectangle {
    let device = |css: f64| (css * factor.get()).round();
    let (left, top) = (device(area.left), device(area.top));
    let width = (device(area.left + area.width) - left).max(1.0);
    let height = (device(area.top + area.height) - top).max(1.0);
    Rectangle { left, top, width, height }
}

/// Whether a picture of this size in device pixels is within the limit and the maximum of its format.
fn fits(width: f64, height: f64, format: ImageFormat) -> bool {
    let max_side = match format {
        // The size of the fields in the format's header.
        ImageFormat::Webp => 16_383.0,
        ImageFormat::Jpeg => 65_535.0,
        // The default limit of libpng, with which most programs read images. Chromium draws pictures with longer
        // sides, but fails on much longer ones.
        ImageFormat::Png => 1_000_000.0,
    };
    #[expect(clippy::cast_precision_loss, reason = "the limit is exact")]
    let max_pixels = limits::MAX_IMAGE_PIXELS as f64;
    width.max(height) <= max_side && width * height <= max_pixels
}

/// The format in the types of the two commands that capture an image.
fn encodings(format: ImageFormat) -> (ScreenshotParamsFormat, CaptureScreenshotFormat) {
    match format {
        ImageFormat::Png => (ScreenshotParamsFormat::Png, CaptureScreenshotFormat::Png),
        ImageFormat::Jpeg => (ScreenshotParamsFormat::Jpeg, CaptureScreenshotFormat::Jpeg),
        ImageFormat::Webp => (ScreenshotParamsFormat::Webp, CaptureScreenshotFormat::Webp),
    }
}

/// Captures the viewport with a frame.
async fn screenshot_frame(rendering: &mut Rendering<'_>, image: &ImageOptions) -> Result<Bytes, JobError> {
    // A frame can be drawn while a script runs endlessly, and would show an unfinished page. So the main
    // thread must answer first, as for every other capture.
    rendering.wait_for_page(rendering.session.call(&EvaluateParams::new("0"))).await?;
    // The first frame of a document may still show the previous document. A frame that has changed the
    // picture shows the current one; if no frame changes it, the current document is already shown.
    for _ in 0..MAX_FRAMES_BEFORE_SCREENSHOT {
        if rendering.document.changes > 0 {
            break;
        }
        rendering.frame(FrameTime::After(0.0), true).await?;
    }
    let shot = ScreenshotParams {
        format: Some(encodings(image.format).0),
        quality: quality(image),
        optimize_for_speed: Some(image.optimize_for_speed),
    };
    for _ in 0..MAX_SCREENSHOT_ATTEMPTS {
        if let Some(file) = rendering.screenshot(shot.clone()).await? {
            return Ok(file);
        }
    }
    Err(JobError::NoFile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_must_fit_the_pixel_limit_and_its_format() {
        assert!(fits(10_000.0, 10_000.0, ImageFormat::Png));
        assert!(!fits(10_000.0, 10_001.0, ImageFormat::Png));
        assert!(fits(1_000.0, 100_000.0, ImageFormat::Png));
        assert!(fits(100.0, 1_000_000.0, ImageFormat::Png));
        assert!(!fits(10.0, 1_000_001.0, ImageFormat::Png));
        assert!(fits(100.0, 16_383.0, ImageFormat::Webp));
        assert!(!fits(100.0, 16_384.0, ImageFormat::Webp));
        assert!(!fits(16_384.0, 100.0, ImageFormat::Webp));
        assert!(fits(100.0, 65_535.0, ImageFormat::Jpeg));
        assert!(!fits(100.0, 65_536.0, ImageFormat::Jpeg));
        assert!(!fits(1e18, 1e18, ImageFormat::Png));
    }

    #[test]
    fn a_rectangle_has_whole_device_pixels() {
        let of = |left, width, factor: f64| {
            let area = Rectangle { left, top: 0.0, width, height: 0.1 };
            let device = in_device_pixels(area, factor.try_into().unwrap());
            assert!((device.height - 1.0).abs() < f64::EPSILON);
            (device.left, device.width)
        };
        assert_eq!(of(0.0, 100.0, 1.0), (0.0, 100.0));
        assert_eq!(of(10.4, 20.2, 1.0), (10.0, 21.0));
        assert_eq!(of(10.4, 20.2, 2.0), (21.0, 40.0));
        assert_eq!(of(5.0, 0.01, 1.0), (5.0, 1.0));
    }
}
