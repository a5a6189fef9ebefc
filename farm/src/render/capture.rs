//! Creating the file: an image or a PDF.

mod image;
mod outside;
mod page_scripts;
mod pdf;
mod picture_plan;
mod scroll;

use bytes::Bytes;
use platen_shared::job::Output;

use super::{main_thread, prepare, rendering::Rendering, resources};
use crate::error::JobError;

/// Captures the page in its current state. Returns the file, and the number of sheets of a PDF if it is known.
pub(super) async fn capture(rendering: &mut Rendering<'_>) -> Result<(Bytes, Option<u32>), JobError> {
    let options = &rendering.job.options;
    if let Some(css) = &options.css
        && prepare::put_style_last(rendering, css).await?
        && matches!(options.output, Output::Image(_))
    {
        resources::show_changes(rendering).await?;
    }
    match &options.output {
        Output::Image(image) => Ok((image::capture(rendering, image).await?, None)),
        Output::Pdf(pdf) => {
            main_thread::run_last_frame(rendering).await?;
            let viewport_height = f64::from(options.viewport.height.get());
            if scroll::is_scrolled(rendering) {
                let (_, height) = scroll::content_size(rendering).await?;
                if height > viewport_height {
                    scroll::through(rendering, viewport_height, height, true).await?;
                }
            }
            pdf::capture(rendering, pdf).await
        }
    }
}
