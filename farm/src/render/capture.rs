//! Creating the file: a screenshot or a PDF.
//!
//! Invariant: a picture has exactly the requested size in device pixels. If that is not allowed, the job is
//! refused before Chromium draws it.

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        headless_experimental::{ScreenshotParams, ScreenshotParamsFormat},
        page::{
            CaptureScreenshotFormat, CaptureScreenshotParams, GetLayoutMetricsParams, PrintToPdfParams,
            Viewport as Clip,
        },
    },
    js_protocol::runtime::EvaluateParams,
};
use platen_shared::{
    format::{ImageFormat, PaperSize},
    job::{DeviceScaleFactor, Output, PdfScale, Viewport, device_pixels},
    limits,
    refusal::Refusal,
};

use super::{drawn_resources, frame_loop, job_error::JobError, main_thread_frame, rendering::Rendering};
use crate::begin_frames::FrameTime;

/// Quality of JPEG and WebP, which is also Chromium's default: text has no visible artefacts at a normal
/// viewing distance.
const QUALITY: i64 = 80;
/// Use the fast PNG encoder: at 1280×720 it takes 12 ms of CPU instead of 20, a fifth of the job's cost, and
/// the file is a third larger.
const OPTIMIZE_FOR_SPEED: bool = true;
/// Cancels the page's pending animation-frame and idle callbacks: the number of frames of a capture depends
/// on the machine, and the picture must not. Callback ids are shared by all worlds of a document, and the
/// pending ones are the latest.
const CANCEL_CALLBACKS: &str = "(function cancel(window) { try {\
    const most = 10000, last = window.requestAnimationFrame(() => {}), idle = window.requestIdleCallback(() => {});\
    for (let id = last; id > 0 && id > last - most; id--) window.cancelAnimationFrame(id);\
    for (let id = idle; id > 0 && id > idle - most; id--) window.cancelIdleCallback(id);\
    for (let n = 0; n < window.length; n++) cancel(window[n])\
    } catch {} })(window)";
/// Loads lazy images and frames, as printing does.
const LOAD_LAZY_IMAGES: &str = "(() => { const lazy = document.querySelectorAll('img[loading=lazy i], iframe[loading=lazy i]');\
    for (const element of lazy) element.loading = 'eager'; return lazy.length })()";
/// Frames to draw before a screenshot until one of them has changed the picture.
const MAX_FRAMES_BEFORE_SCREENSHOT: u32 = 3;
/// Frames that may be returned without a picture. Two attempts have always been enough.
const MAX_SCREENSHOT_ATTEMPTS: u32 = 8;

/// Captures the page in its current state. `script_ran` says that a script of the page has run.
pub(super) async fn capture(
    rendering: &mut Rendering<'_>,
    viewport: &Viewport,
    output: &Output,
    script_ran: bool,
) -> Result<Bytes, JobError> {
    match *output {
        Output::Image { format, full_page } => {
            image(rendering, viewport, format, full_page, script_ran).await
        }
        Output::Pdf { paper, print_background, scale } => {
            // Printing waits for resources that the page loads for it.
            let mut printing = rendering.session.start(&print(paper, print_background, scale))?;
            frame_loop::while_waiting(rendering, printing.reply()).await?.into_file()?.ok_or(JobError::NoFile)
        }
    }
}

async fn image(
    rendering: &mut Rendering<'_>,
    viewport: &Viewport,
    format: ImageFormat,
    full_page: bool,
    script_ran: bool,
) -> Result<Bytes, JobError> {
    let session = rendering.session;
    let (mut width, mut height) = (viewport.width.get(), viewport.height.get());
    if full_page {
        let lazy = rendering.evaluate_isolated(LOAD_LAZY_IMAGES).await?;
        if lazy.is_some_and(|count| count != 0) {
            if rendering.has_begin_frame_control() && !rendering.in_virtual_time {
                main_thread_frame::run(rendering, FrameTime::Same).await?;
            }
            drawn_resources::settle(rendering).await?;
        }
        // The full page includes content that overflows to the right.
        let metrics = rendering.wait_for_page(session.call(&GetLayoutMetricsParams {})).await?;
        let content = metrics.css_content_size;
        width = width.max(whole_pixels(content.width));
        height = height.max(whole_pixels(content.height));
    }
    if !fits(width, height, viewport.device_scale_factor, format) {
        return Err(JobError::Refused(Refusal::PageTooLarge));
    }
    let (frame_encoding, encoding) = encodings(format);
    let quality = (format != ImageFormat::Png).then_some(QUALITY);
    // A begin-frame screenshot ignores the device scale factor and shows only the viewport.
    #[expect(clippy::float_cmp, reason = "1 is exact")]
    let by_frame = !full_page && viewport.device_scale_factor.get() == 1.0;
    if by_frame && rendering.has_begin_frame_control() {
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
    if script_ran && rendering.has_begin_frame_control() {
        rendering.evaluate_isolated(CANCEL_CALLBACKS).await?;
    }
    let mut capture = CaptureScreenshotParams {
        format: Some(encoding),
        quality,
        optimize_for_speed: Some(OPTIMIZE_FOR_SPEED),
        ..Default::default()
    };
    // Chromium does not answer if the width or height is less than one device pixel.
    let one_pixel = 1.0 / viewport.device_scale_factor.get();
    let (width, height) = (f64::from(width), f64::from(height));
    if full_page || width < one_pixel || height < one_pixel {
        let (width, height) = (width.max(one_pixel), height.max(one_pixel));
        capture.clip = Some(Clip { x: 0.0, y: 0.0, width, height, scale: 1.0 });
        // A taller viewport instead would change elements that are sized by the viewport.
        capture.capture_beyond_viewport = Some(true);
    }
    let mut capturing = session.start(&capture)?;
    frame_loop::while_capturing(rendering, capturing.reply()).await?.into_file()?.ok_or(JobError::NoFile)
}

/// A length in CSS pixels, rounded up.
fn whole_pixels(length: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let length = length.ceil() as u32;
    length
}

/// Whether a picture of this size in CSS pixels is within the limit and the maximum of its format.
fn fits(width: u32, height: u32, factor: DeviceScaleFactor, format: ImageFormat) -> bool {
    let max_side = match format {
        // The size of the fields in the format's header.
        ImageFormat::Webp => 16_383.0,
        ImageFormat::Jpeg => 65_535.0,
        ImageFormat::Png => f64::INFINITY,
    };
    let longer_side = (f64::from(width.max(height)) * factor.get()).round();
    longer_side <= max_side && device_pixels(width, height, factor) <= limits::MAX_IMAGE_PIXELS
}

/// The format in the types of the two commands that capture an image.
fn encodings(format: ImageFormat) -> (ScreenshotParamsFormat, CaptureScreenshotFormat) {
    match format {
        ImageFormat::Png => (ScreenshotParamsFormat::Png, CaptureScreenshotFormat::Png),
        ImageFormat::Jpeg => (ScreenshotParamsFormat::Jpeg, CaptureScreenshotFormat::Jpeg),
        ImageFormat::Webp => (ScreenshotParamsFormat::Webp, CaptureScreenshotFormat::Webp),
    }
}

/// Options of a PDF. Margins are Chromium's default of 1 cm, which `@page { margin }` changes. The caller
/// chooses the paper size, not the page.
fn print(paper: PaperSize, print_background: bool, scale: PdfScale) -> PrintToPdfParams {
    let (width, height) = paper.inches();
    PrintToPdfParams {
        print_background: Some(print_background),
        scale: Some(scale.get()),
        paper_width: Some(width),
        paper_height: Some(height),
        display_header_footer: Some(false),
        prefer_css_page_size: Some(false),
        // Tags are Chromium's default, and take up to eight times as long as the rest of the PDF.
        generate_tagged_pdf: Some(false),
        generate_document_outline: Some(false),
        ..Default::default()
    }
}

/// Captures the viewport with a frame.
async fn screenshot_frame(rendering: &mut Rendering<'_>, shot: ScreenshotParams) -> Result<Bytes, JobError> {
    // The first frame of a document may still show the previous document. A frame that has changed the
    // picture shows the current one; if no frame changes it, the current document is already shown.
    for _ in 0..MAX_FRAMES_BEFORE_SCREENSHOT {
        if rendering.has_drawn {
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
        let fits =
            |width, height, factor: f64, format| fits(width, height, factor.try_into().unwrap(), format);
        assert!(fits(10_000, 10_000, 1.0, ImageFormat::Png));
        assert!(!fits(10_000, 10_001, 1.0, ImageFormat::Png));
        assert!(!fits(2_600, 2_600, 4.0, ImageFormat::Png));
        assert!(fits(100, 16_383, 1.0, ImageFormat::Webp));
        assert!(!fits(100, 16_384, 1.0, ImageFormat::Webp));
        assert!(!fits(8_192, 100, 2.0, ImageFormat::Webp));
        assert!(fits(100, 65_535, 1.0, ImageFormat::Jpeg));
        assert!(!fits(100, 65_536, 1.0, ImageFormat::Jpeg));
        assert!(!fits(u32::MAX, u32::MAX, 4.0, ImageFormat::Png));
    }
}
