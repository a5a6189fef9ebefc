//! Creating the file: an image or a PDF.

mod image;
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
        image::show_changes(rendering).await?;
    }
    match &options.output {
        Output::Image(image) => image::capture(rendering, &options.viewport, image, script_ran).await,
        Output::Pdf(pdf) => pdf::capture(rendering, pdf, job, script_ran).await,
    }
}
