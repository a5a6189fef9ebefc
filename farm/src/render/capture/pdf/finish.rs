//! What a file gets after the browser has printed it.
//!
//! The file is written anew: an update at its end would keep the browser's dates and ids in it, so that equal jobs would
//! not give equal files.

use bytes::Bytes;
use lopdf::Document;
use platen_shared::job::PdfOptions;
use tokio::task::spawn_blocking;

use crate::error::JobError;

/// Whether the options ask for more than the browser prints.
fn is_needed(pdf: &PdfOptions) -> bool {
    pdf.tagged || pdf.document != platen_shared::job::DocumentOptions::default()
}

/// The file with what the options ask for.
pub(super) async fn finish(file: Bytes, pdf: &PdfOptions) -> Result<Bytes, JobError> {
    if !is_needed(pdf) {
        return Ok(file);
    }
    let pdf = pdf.clone();
    let finished = spawn_blocking(move || finished(&file, &pdf)).await;
    finished.map_err(|_| JobError::NoFile)?
}

fn finished(file: &Bytes, _pdf: &PdfOptions) -> Result<Bytes, JobError> {
    let mut document = Document::load_mem(file)?;
    // Steps, in this order: first page, ids of the structure tree, metadata, attachments, standard, protection.
    let mut file = Vec::new();
    document.save_to(&mut file).map_err(lopdf::Error::from)?;
    Ok(file.into())
}
