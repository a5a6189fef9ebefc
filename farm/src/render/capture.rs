//! Creating the file: an image or a PDF.

mod image;
mod outside;
mod pdf;
mod scroll;

use bytes::Bytes;
use platen_shared::job::{Output, RenderJob};

use super::{job_error::JobError, rendering::Rendering, style};

/// Captures the page in its current state. `script_ran` says that a script of the page has run.
pub(super) async fn capture(
    rendering: &mut Rendering<'_>,
    job: &RenderJob,
    script_ran: bool,
) -> Result<Bytes, JobError> {
    let options = &job.options;
    if let Some(css) = &options.css
        && style::put_last(rendering, css).await?
        && matches!(options.output, Output::Image(_))
    {
        outside::show_changes(rendering).await?;
    }
    // Without a script of the page nothing notices that the page is scrolled.
    let scroll = script_ran && options.scroll;
    match &options.output {
        Output::Image(image) => image::capture(rendering, &options.viewport, image, script_ran, scroll).await,
        Output::Pdf(pdf) => {
            let viewport_height = f64::from(options.viewport.height.get());
            if scroll {
                let (_, height) = scroll::content_size(rendering).await?;
                if height > viewport_height {
                    scroll::through(rendering, viewport_height, height, true).await?;
                }
            }
            pdf::capture(rendering, pdf, job, script_ran).await
        }
    }
}
