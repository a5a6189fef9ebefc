//! The metadata of a file: its information dictionary, the XMP packet with the same values, its language and its identifier.

use lopdf::{
    Dictionary, Document, Object, Stream, StringFormat, decode_text_string, dictionary, text_string,
};
use platen_shared::{
    job::{DocumentOptions, Metadata, PdfA},
    locale::Locale,
};
use sha2::{Digest as _, Sha256};

use super::xmp::{self, Schema};

/// Sets what the job asks for in the information dictionary, which has the browser's values.
pub(super) fn set_info(document: &mut Document, metadata: &Metadata) -> lopdf::Result<()> {
    let info = document.trailer.get(b"Info")?.as_reference()?;
    let info = document.get_dictionary_mut(info)?;
    for (key, text) in [
        ("Title", &metadata.title),
        ("Author", &metadata.author),
        ("Subject", &metadata.subject),
        ("Keywords", &metadata.keywords),
        ("Creator", &metadata.creator),
    ] {
        if let Some(text) = text {
            info.set(key, text_string(text.as_str()));
        }
    }
    if let Some(date) = metadata.date.as_ref().and_then(|date| pdf_date(date.as_str())) {
        for key in ["CreationDate", "ModDate"] {
            info.set(key, Object::string_literal(date.as_str()));
        }
    }
    Ok(())
}

/// Sets the language of the document. Where the page names none, the browser has written its own.
pub(super) fn set_language(document: &mut Document, language: Option<&Locale>) -> lopdf::Result<()> {
    let catalog = document.catalog_mut()?;
    match language {
        Some(language) => catalog.set("Lang", Object::string_literal(language.as_str())),
        None => _ = catalog.remove(b"Lang"),
    }
    let tree = document.catalog()?.get_deref(b"StructTreeRoot", document).and_then(Object::as_dict);
    if let Ok(root) = tree.and_then(|tree| tree.get(b"K")).and_then(Object::as_reference) {
        document.get_dictionary_mut(root)?.remove(b"Lang");
    }
    Ok(())
}

/// Adds the XMP packet with the values of the information dictionary.
pub(super) fn add_xmp(
    document: &mut Document,
    archive: Option<PdfA>,
    schemas: &[Schema],
) -> lopdf::Result<()> {
    let language = document.catalog()?.get(b"Lang").and_then(decode_text_string).ok();
    let packet = xmp::packet(info(document)?, language.as_deref(), archive, schemas);
    let dictionary = dictionary! { "Type" => "Metadata", "Subtype" => "XML" };
    // Readers that know nothing of PDF look for the packet in the bytes of the file.
    let stream = Stream::new(dictionary, packet.into_bytes()).with_compression(false);
    let stream = document.add_object(stream);
    let catalog = document.catalog_mut()?;
    catalog.set("Metadata", stream);
    catalog.set("ViewerPreferences", dictionary! { "DisplayDocTitle" => true });
    Ok(())
}

pub(super) fn info(document: &Document) -> lopdf::Result<&Dictionary> {
    document.get_dictionary(document.trailer.get(b"Info")?.as_reference()?)
}

/// Whether the information dictionary has a title.
pub(super) fn has_title(document: &Document) -> bool {
    let title = info(document).and_then(|info| info.get(b"Title")).and_then(decode_text_string);
    title.is_ok_and(|title| !title.trim().is_empty())
}

/// Identifies the file by what it has: its pages, fonts, images, files and XMP packet.
pub(super) fn set_id(document: &mut Document) {
    let mut hash = Sha256::new();
    for object in document.objects.values() {
        if let Object::Stream(stream) = object {
            hash.update(&stream.content);
        }
    }
    let id = Object::String(hash.finalize()[..16].to_vec(), StringFormat::Hexadecimal);
    document.trailer.set("ID", vec![id.clone(), id]);
}

/// Whether the file gets an XMP packet.
pub(super) fn is_wanted(options: &DocumentOptions) -> bool {
    options.metadata != Metadata::default() || options.archive().is_some() || options.standard.ua1
}

/// A date of PDF for one of RFC 3339 such as `2026-07-24T09:30:00+02:00`.
fn pdf_date(date: &str) -> Option<String> {
    let (time, rest) = date.split_at_checked("2026-07-24T09:30:00".len())?;
    let digits: String = time.chars().filter(char::is_ascii_digit).collect();
    let offset = rest.trim_start_matches(|character: char| character == '.' || character.is_ascii_digit());
    let offset = if offset.eq_ignore_ascii_case("z") { "+00:00" } else { offset };
    Some(format!("D:{digits}{}'", offset.replace(':', "'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_form_of_pdf() {
        for (date, expected) in [
            ("2026-07-24T09:30:00+02:00", "D:20260724093000+02'00'"),
            ("2026-07-24T09:30:00-03:30", "D:20260724093000-03'30'"),
            ("2026-07-24T09:30:00Z", "D:20260724093000+00'00'"),
            ("2026-07-24t09:30:00.25z", "D:20260724093000+00'00'"),
        ] {
            let found = pdf_date(date).unwrap();
            assert_eq!(found, expected);
            assert!(xmp::date(&found).is_some_and(|it| it.starts_with("2026-07-24T09:30:00")), "{found}");
        }
        assert_eq!(pdf_date("2026"), None);
    }
}
