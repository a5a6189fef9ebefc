//! What a file gets after the browser has printed it.
//!
//! The file is written anew: an update at its end would keep the browser's dates and ids in it, so that equal jobs would
//! not give equal files.

use bytes::Bytes;
use lopdf::Document;
use platen_shared::{
    job::{DocumentOptions, PdfOptions},
    locale::Locale,
};
use tokio::task::spawn_blocking;

use super::{attachments, first_page, metadata, protection, structure_ids};
use crate::error::JobError;

/// Whether the options ask for more than the browser prints, apart from the first page.
pub(super) fn is_needed(pdf: &PdfOptions) -> bool {
    pdf.tagged || pdf.document != DocumentOptions::default()
}

/// The file with what the options ask for. `first_page` is a file of the first page, as it must be in this one; `language` is
/// that of the document.
pub(super) async fn finish(
    file: Bytes,
    first_page: Option<Bytes>,
    pdf: &PdfOptions,
    language: Option<Locale>,
) -> Result<Bytes, JobError> {
    if first_page.is_none() && !is_needed(pdf) {
        return Ok(file);
    }
    let pdf = pdf.clone();
    let finished =
        spawn_blocking(move || finished(&file, first_page.as_deref(), &pdf, language.as_ref())).await;
    finished.map_err(|_| JobError::NoFile)?
}

fn finished(
    file: &[u8],
    first_page: Option<&[u8]>,
    pdf: &PdfOptions,
    language: Option<&Locale>,
) -> Result<Bytes, JobError> {
    let options = &pdf.document;
    let mut document = Document::load_mem(file)?;
    if let Some(page) = first_page {
        first_page::insert(&mut document, page)?;
    }
    if pdf.tagged {
        structure_ids::renumber(&mut document)?;
    }
    if let Some(language) = language {
        metadata::set_language(&mut document, language)?;
    }
    if metadata::is_wanted(options) {
        metadata::set_info(&mut document, &options.metadata)?;
        let schemas: Vec<_> = options.invoice.as_ref().map(attachments::invoice_schema).into_iter().collect();
        metadata::add_xmp(&mut document, options.archive(), &schemas)?;
    }
    attachments::add(&mut document, options)?;
    metadata::set_id(&mut document);
    if let Some(protection) = &options.protection {
        protection::protect(&mut document, protection)?;
    }
    let mut file = Vec::new();
    document.save_to(&mut file).map_err(lopdf::Error::from)?;
    Ok(file.into())
}
