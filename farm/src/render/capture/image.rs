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
    job::{DeviceScaleFactor, ImageOptions, Region},
    limits,
    refusal::Refusal,
};

use super::{
    super::{
        elements::{self, Rectangle},
        frame_loop,
        rendering::Rendering,
    },
    KEEP_SCRIPTED, is_scrolled, last_frame, scroll, set_scripts, show_outside, show_outside_frames,
};
use crate::{begin_frames::FrameTime, error::JobError};

/// Use the fast PNG encoder: at 1280×720 it takes 12 ms of CPU instead of 20, a fifth of the job's cost, and
/// the file is a third larger.
const OPTIMIZE_FOR_SPEED: bool = true;
/// Defines `own.resized`.
const RESIZED: &str = concat!("(", include_str!("resized.js"), ")()");
/// Frames to draw before a screenshot until one of them has changed the picture.
const MAX_FRAMES_BEFORE_SCREENSHOT: u32 = 3;
/// Frames that may be returned without a picture. Two attempts have always been enough.
const MAX_SCREENSHOT_ATTEMPTS: u32 = 8;

/// Captures an image of the page in its current state.
pub(super) async fn capture(rendering: &mut Rendering<'_>, image: &ImageOptions) -> Result<Bytes, JobError> {
    let (session, viewport) = (rendering.session, &rendering.job.options.viewport);
    let factor = viewport.device_scale_factor;
    let whole = Rectangle {
        left: 0.0,
        top: 0.0,
        width: viewport.width.get().into(),
        height: viewport.height.get().into(),
    };
    // A begin-frame screenshot ignores the device scale factor and shows only the viewport.
    #[expect(clippy::float_cmp, reason = "1 is exact")]
    let by_frame =
        image.region == Region::Viewport && factor.get() == 1.0 && rendering.has_begin_frame_control();
    if !by_frame {
        last_frame(rendering).await?;
    }
    let area = match &image.region {
        Region::Viewport => whole,
        Region::FullPage => full_page(rendering, whole).await?,
        Region::Element(selector) => {
            show_outside(rendering).await?;
            let area = elements::border_box(rendering, selector).await?;
            if scroll_to_bottom_of(rendering, area, whole).await? {
                elements::border_box(rendering, selector).await?
            } else {
                area
            }
        }
        Region::Clip(clip) => {
            let area = Rectangle {
                left: clip.x.pixels(),
                top: clip.y.pixels(),
                width: clip.width.pixels(),
                height: clip.height.pixels(),
            };
            if area.bottom() > whole.height {
                show_outside(rendering).await?;
                scroll_to_bottom_of(rendering, area, whole).await?;
            }
            area
        }
    };
    let bottom = area.bottom();
    let area = in_device_pixels(area, factor);
    if !fits(area.width, area.height, image.format) {
        return Err(JobError::Refused(Refusal::PageTooLarge));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the limit")]
    rendering.pooled.browser.allow_picture((area.width * area.height) as u64);
    let (frame_encoding, encoding) = encodings(image.format);
    let quality = (image.format != ImageFormat::Png).then_some(image.quality.get().into());
    if by_frame {
        // A frame can be drawn while a script runs endlessly, and would show an unfinished page. So the main
        // thread must answer first, as for every other capture.
        rendering.wait_for_page(session.call(&EvaluateParams::new("0"))).await?;
        let shot = ScreenshotParams {
            format: Some(frame_encoding),
            quality,
            optimize_for_speed: Some(OPTIMIZE_FOR_SPEED),
        };
        return screenshot_frame(rendering, shot).await;
    }
    if bottom > whole.height {
        show_outside_frames(rendering, bottom).await?;
    }
    let mut capture = CaptureScreenshotParams {
        format: Some(encoding),
        quality,
        optimize_for_speed: Some(OPTIMIZE_FOR_SPEED),
        ..Default::default()
    };
    // Chromium does not answer if the width or height of the viewport is less than one device pixel.
    if image.region != Region::Viewport || whole.width.min(whole.height) * factor.get() < 1.0 {
        let css = |device: f64| device / factor.get();
        capture.clip = Some(Clip {
            x: css(area.left),
            y: css(area.top),
            width: css(area.width),
            height: css(area.height),
            scale: 1.0,
        });
        // A taller viewport instead would change elements that are sized by the viewport.
        capture.capture_beyond_viewport = Some(true);
    }
    screenshot(rendering, &capture).await
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
    let beyond = capture.capture_beyond_viewport == Some(true);
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

/// The whole page, after its reader has scrolled through it.
async fn full_page(rendering: &mut Rendering<'_>, viewport: Rectangle) -> Result<Rectangle, JobError> {
    show_outside(rendering).await?;
    let before = content(rendering, viewport).await?;
    if !is_scrolled(rendering) || before.height <= viewport.height {
        return Ok(before);
    }
    let seen = scroll::through(rendering, viewport.height, before.height, true).await?;
    show_outside(rendering).await?;
    let mut whole = content(rendering, viewport).await?;
    if seen > before.height {
        whole.height = whole.height.min(seen);
    }
    Ok(whole)
}

/// The viewport and what overflows it to the right and below.
async fn content(rendering: &Rendering<'_>, viewport: Rectangle) -> Result<Rectangle, JobError> {
    let (width, height) = scroll::content_size(rendering).await?;
    Ok(Rectangle { width: viewport.width.max(width), height: viewport.height.max(height), ..viewport })
}

/// Scrolls through the page as far as the bottom of an area, if that is below the viewport.
async fn scroll_to_bottom_of(
    rendering: &mut Rendering<'_>,
    area: Rectangle,
    viewport: Rectangle,
) -> Result<bool, JobError> {
    if !is_scrolled(rendering) || area.bottom() <= viewport.height {
        return Ok(false);
    }
    let bottom = area.bottom().min(content(rendering, viewport).await?.height);
    scroll::through(rendering, viewport.height, bottom, false).await?;
    show_outside(rendering).await?;
    Ok(true)
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
async fn screenshot_frame(rendering: &mut Rendering<'_>, shot: ScreenshotParams) -> Result<Bytes, JobError> {
    // The first frame of a document may still show the previous document. A frame that has changed the
    // picture shows the current one; if no frame changes it, the current document is already shown.
    for _ in 0..MAX_FRAMES_BEFORE_SCREENSHOT {
        if rendering.document.has_drawn {
            break;
        }
        rendering.frame(FrameTime::After(0.0), true).await?;
    }
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
