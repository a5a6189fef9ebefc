//! Making the file.
//!
//! Invariant: a picture has exactly the asked size in device pixels, or the job is refused before
//! Chromium is asked for it.

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

use super::{JobError, drawn_resources, rendering::Rendering};

/// Quality of lossy pictures: where text edges show no artefacts at a normal viewing distance, and
/// what the usual tools do. Also Chromium's own default.
const QUALITY: i64 = 80;
/// Whether PNG files may be larger for being made sooner: a third larger for 12 instead of 20 ms of
/// CPU, at 1280×720, which is a fifth of what the whole job costs.
const SPEED_OVER_SIZE: bool = true;
/// Takes back the animation-frame and idle callbacks that the page has requested: how many frames a capture
/// takes depends on the machine, and what it shows must not. Ids of callbacks are counted for all worlds of a
/// document, and those that wait are the latest.
const CANCEL_CALLBACKS: &str = "(function cancel(window) { try {\
    const most = 10000, last = window.requestAnimationFrame(() => {}), idle = window.requestIdleCallback(() => {});\
    for (let id = last; id > 0 && id > last - most; id--) window.cancelAnimationFrame(id);\
    for (let id = idle; id > 0 && id > idle - most; id--) window.cancelIdleCallback(id);\
    for (let n = 0; n < window.length; n++) cancel(window[n])\
    } catch {} })(window)";
/// Loads the images and frames that are loaded when a reader comes near them, as printing does.
const LOAD_LAZY_IMAGES: &str = "(() => { const lazy = document.querySelectorAll('img[loading=lazy i], iframe[loading=lazy i]');\
    for (const element of lazy) element.loading = 'eager'; return lazy.length })()";
/// Frames drawn before a picture, if none of them changes anything.
const FRAMES_BEFORE: u32 = 3;
/// Two have always been enough.
const FRAMES_TRIED: u32 = 8;

/// Takes the page as it is now. `script_ran` says that a script of it may go on.
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
            // Printing waits for what it makes the page load.
            let mut printing = rendering.session.start(&print(paper, print_background, scale))?;
            rendering.frames_during(printing.reply()).await?.into_file()?.ok_or(JobError::NoFile)
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
            drawn_resources::settle(rendering).await?;
        }
        // The whole page: what sticks out to the right is part of it, as in other tools.
        let metrics = rendering.done_by_page(session.call(&GetLayoutMetricsParams {})).await?;
        let content = metrics.css_content_size;
        width = width.max(whole(content.width));
        height = height.max(whole(content.height));
    }
    if !fits(width, height, viewport.device_scale_factor, format) {
        return Err(JobError::Refused(Refusal::PageTooLarge));
    }
    // A frame knows no device scale factor but 1 and ends with the viewport.
    #[expect(clippy::float_cmp, reason = "1 is exact")]
    let by_frame = !full_page && viewport.device_scale_factor.get() == 1.0;
    if by_frame && rendering.draws_on_command() {
        // A frame can be drawn around a script that never ends; it would show how far the page came, not
        // the page. So its main thread must answer first, as it must for every other capture.
        rendering.done_by_page(session.call(&EvaluateParams::new("0"))).await?;
        let shot = ScreenshotParams {
            format: Some(frame_encoding(format)),
            quality: (format != ImageFormat::Png).then_some(QUALITY),
            optimize_for_speed: Some(SPEED_OVER_SIZE),
        };
        return screenshot(rendering, shot).await;
    }
    if script_ran && rendering.draws_on_command() {
        rendering.evaluate_isolated(CANCEL_CALLBACKS).await?;
    }
    let mut capture = CaptureScreenshotParams {
        format: Some(encoding(format)),
        optimize_for_speed: Some(SPEED_OVER_SIZE),
        ..Default::default()
    };
    if format != ImageFormat::Png {
        capture.quality = Some(QUALITY);
    }
    // Chromium never answers for an image of less than one device pixel in either direction.
    let one_pixel = 1.0 / viewport.device_scale_factor.get();
    let (width, height) = (f64::from(width), f64::from(height));
    if full_page || width < one_pixel || height < one_pixel {
        let (width, height) = (width.max(one_pixel), height.max(one_pixel));
        capture.clip = Some(Clip { x: 0.0, y: 0.0, width, height, scale: 1.0 });
        // Not by a taller viewport, which would stretch what is sized by it.
        capture.capture_beyond_viewport = Some(true);
    }
    let mut capturing = session.start(&capture)?;
    rendering.draw_during(capturing.reply()).await?.into_file()?.ok_or(JobError::NoFile)
}

/// A content size is whole in CSS pixels, whatever its type.
fn whole(length: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let length = length.ceil() as u32;
    length
}

/// Whether a picture of so many CSS pixels may be made and can be held by its format.
fn fits(width: u32, height: u32, factor: DeviceScaleFactor, format: ImageFormat) -> bool {
    let longest = match format {
        // The width of a field in each format's header.
        ImageFormat::Webp => 16_383.0,
        ImageFormat::Jpeg => 65_535.0,
        ImageFormat::Png => f64::INFINITY,
    };
    let longer = (f64::from(width.max(height)) * factor.get()).round();
    longer <= longest && device_pixels(width, height, factor) <= limits::MAX_IMAGE_PIXELS
}

fn frame_encoding(format: ImageFormat) -> ScreenshotParamsFormat {
    match format {
        ImageFormat::Png => ScreenshotParamsFormat::Png,
        ImageFormat::Webp => ScreenshotParamsFormat::Webp,
        ImageFormat::Jpeg => ScreenshotParamsFormat::Jpeg,
    }
}

fn encoding(format: ImageFormat) -> CaptureScreenshotFormat {
    match format {
        ImageFormat::Png => CaptureScreenshotFormat::Png,
        ImageFormat::Jpeg => CaptureScreenshotFormat::Jpeg,
        ImageFormat::Webp => CaptureScreenshotFormat::Webp,
    }
}

/// Paper and options of a PDF. Margins are not set: Chromium's own are a centimetre, and
/// `@page { margin }` changes them. The paper is the caller's choice, not the page's.
fn print(paper: PaperSize, print_background: bool, scale: PdfScale) -> PrintToPdfParams {
    let (width, height) = paper.inches();
    PrintToPdfParams {
        print_background: Some(print_background),
        scale: Some(scale.get()),
        paper_width: Some(width),
        paper_height: Some(height),
        display_header_footer: Some(false),
        prefer_css_page_size: Some(false),
        // Tags cost up to eight times the whole PDF, and Chromium makes them unless told.
        generate_tagged_pdf: Some(false),
        generate_document_outline: Some(false),
        ..Default::default()
    }
}

/// The viewport as one frame shows it.
async fn screenshot(rendering: &mut Rendering<'_>, shot: ScreenshotParams) -> Result<Bytes, JobError> {
    // A document's first frame may show the one before, without its picture or with it. One that
    // changed something shows the document; where nothing changes, it has been shown already.
    for _ in 0..FRAMES_BEFORE {
        if rendering.has_drawn() {
            break;
        }
        rendering.draw().await?;
    }
    for _ in 0..FRAMES_TRIED {
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
    fn a_picture_fits_its_limit_and_its_format() {
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
