//! A PDF file of Chromium, read and changed by a PDF library.
//!
//! Invariant: nothing is searched for in the bytes of a file, because text of the page is among them.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use lopdf::{Dictionary, Document, IncrementalDocument, LoadOptions, Object, ObjectId, decode_text_string};
use platen_shared::{job::Sheet, length::Length, locale::Locale};
use tokio::task::spawn_blocking;

use super::metadata;
use crate::error::JobError;

/// CSS pixels of a point, the unit of PDF.
const PIXELS_PER_POINT: f64 = 96.0 / 72.0;

/// The number of sheets of a file of Chromium, without reading all of it.
pub(super) fn sheets(file: &[u8]) -> Option<u32> {
    Document::load_metadata_mem(file).ok().map(|metadata| metadata.page_count).filter(|count| *count > 0)
}

#[derive(Debug)]
pub(super) struct PdfFile(Document);

impl PdfFile {
    pub(super) async fn parse(file: &Bytes) -> Result<Self, JobError> {
        let options = LoadOptions { filter: Some(without_content), strict: true, ..LoadOptions::default() };
        let file = file.clone();
        let parsed = spawn_blocking(move || Document::load_mem_with_options(&file, options)).await;
        Ok(Self(parsed.map_err(|_| JobError::NoFile)??))
    }

    pub(super) fn page_count(&self) -> u64 {
        self.0.page_iter().count() as u64
    }

    pub(super) fn first_sheet(&self) -> Result<Sheet, JobError> {
        let page = self.0.get_dictionary(self.0.page_iter().next().ok_or(JobError::NoFile)?)?;
        let [left, bottom, right, top] = &page.get_deref(b"MediaBox", &self.0)?.as_array()?[..] else {
            return Err(JobError::NoFile);
        };
        let side = |from: &Object, to: &Object| {
            let points = f64::from(to.as_float()? - from.as_float()?);
            Length::try_from(points * PIXELS_PER_POINT).map_err(|_| JobError::NoFile)
        };
        Ok(Sheet { width: side(left, right)?, height: side(bottom, top)? })
    }

    /// `file`, which is this one, with a language, in an update at its end.
    pub(super) fn with_language(self, file: Bytes, language: &Locale) -> Result<Bytes, JobError> {
        let catalog = self.0.trailer.get(b"Root")?.as_reference()?;
        let mut update = IncrementalDocument::create_from(file.into(), self.0);
        update.opt_clone_object_to_new_document(catalog)?;
        metadata::set_language(&mut update.new_document, Some(language))?;
        let mut file = Vec::new();
        update.save_to(&mut file).map_err(lopdf::Error::from)?;
        Ok(file.into())
    }
}

/// The titles of the outline that differ from the headings of the page in white space: Chromium omits that at the ends of lines.
pub(super) fn changed_titles(document: &Document, headings: &[String]) -> Vec<(ObjectId, String)> {
    if headings.is_empty() {
        return Vec::new();
    }
    let mut by_letters: HashMap<String, VecDeque<String>> = HashMap::new();
    for heading in headings {
        let title = heading.replace(SOFT_HYPHEN, "").split_whitespace().collect::<Vec<_>>().join(" ");
        by_letters.entry(letters(&title)).or_default().push_back(title);
    }
    let mut changed = Vec::new();
    for id in outline_items(document) {
        let item = document.get_dictionary(id).and_then(|item| item.get(b"Title"));
        let Ok(title) = item.and_then(decode_text_string) else { continue };
        // The outline has the order of the headings.
        let heading = by_letters.get_mut(&letters(&title)).and_then(VecDeque::pop_front);
        changed.extend(heading.filter(|heading| *heading != title).map(|heading| (id, heading)));
    }
    changed
}

/// The items of the outline from top to bottom.
fn outline_items(document: &Document) -> Vec<ObjectId> {
    let referenced = |dictionary: &Dictionary, key: &[u8]| dictionary.get(key).ok()?.as_reference().ok();
    let outline = document.catalog().and_then(|catalog| catalog.get_deref(b"Outlines", document));
    let outline = outline.and_then(Object::as_dict).ok();
    let mut left: Vec<ObjectId> = outline.and_then(|it| referenced(it, b"First")).into_iter().collect();
    let mut items = Vec::new();
    while let Some(id) = left.pop() {
        items.push(id);
        let Ok(item) = document.get_dictionary(id) else { continue };
        left.extend(referenced(item, b"Next"));
        left.extend(referenced(item, b"First"));
    }
    items
}

const SOFT_HYPHEN: char = '\u{ad}';

/// The characters of a text that it has in whatever way its lines are broken.
fn letters(text: &str) -> String {
    let is_kept = |character: &char| {
        !character.is_whitespace() && !matches!(*character, SOFT_HYPHEN | '-' | '\u{2010}')
    };
    text.chars().filter(is_kept).collect()
}

/// Leaves out the streams and the structure tree, which are most of a file.
fn without_content(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let is_kept = !object.as_dict().ok()?.has_type(b"StructElem");
    is_kept.then(|| (id, object.clone()))
}
