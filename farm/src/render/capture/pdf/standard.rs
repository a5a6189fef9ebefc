//! PDF/A-2b, PDF/A-3b (ISO 19005-2 and -3) and PDF/UA-1 (ISO 14289-1): what the browser's file lacks is added, and what
//! cannot be added is refused with its rule.

use lopdf::{Document, Object, Stream, dictionary};
use platen_shared::job::{DocumentOptions, PdfStandard};

use super::{
    artifacts, fonts, metadata, srgb, structure,
    xmp::{Property, Schema},
};
use crate::error::JobError;

/// ISO 19005-2, 6.1.13.
const MAX_STRING_BYTES: usize = 32_767;
const MAX_NAME_BYTES: usize = 127;

/// Makes the file conform to the standards that the options ask for, apart from its XMP packet.
pub(super) fn apply(document: &mut Document, options: &DocumentOptions) -> Result<(), JobError> {
    let archive = options.archive().is_some();
    if !archive && !options.standard.ua1 {
        return Ok(());
    }
    "1.7".clone_into(&mut document.version);
    fonts::check_glyphs(document)?;
    if archive {
        check_limits(document)?;
        add_output_intent(document)?;
    }
    if options.standard.ua1 {
        if !metadata::has_title(document) {
            return Err(JobError::standard_not_met("the document needs a title"));
        }
        if !document.catalog()?.has(b"Lang") {
            return Err(JobError::standard_not_met(
                "the document needs a language, such as lang=\"en\" of its root element",
            ));
        }
        structure::repair(document)?;
        fonts::repair_characters(document)?;
        artifacts::mark(document)?;
    }
    Ok(())
}

/// The identification of PDF/UA, which PDF/A does not know.
pub(super) fn schemas(standard: PdfStandard) -> Vec<Schema> {
    let part = Property {
        name: "part",
        value_type: "Integer",
        category: "internal",
        description: "Part of ISO 14289",
        value: "1".to_owned(),
    };
    let schema = Schema {
        name: "PDF/UA identification",
        namespace: "http://www.aiim.org/pdfua/ns/id/",
        prefix: "pdfuaid",
        properties: vec![part],
    };
    standard.ua1.then_some(schema).into_iter().collect()
}

/// Says that the colours without a profile are those of sRGB.
fn add_output_intent(document: &mut Document) -> lopdf::Result<()> {
    let profile = document.add_object(Stream::new(dictionary! { "N" => 3 }, srgb::profile()));
    let intent = dictionary! {
        "Type" => "OutputIntent",
        "S" => "GTS_PDFA1",
        "OutputConditionIdentifier" => Object::string_literal("sRGB"),
        "Info" => Object::string_literal("sRGB IEC61966-2.1"),
        "DestOutputProfile" => profile,
    };
    document.catalog_mut()?.set("OutputIntents", vec![intent.into()]);
    Ok(())
}

/// Refuses texts and names that are too long; a link or an `alt` of the page may be.
fn check_limits(document: &Document) -> Result<(), JobError> {
    if document.objects.values().all(is_in_limits) {
        Ok(())
    } else {
        Err(JobError::standard_not_met("a link, an alternative text or an id of the page is too long"))
    }
}

fn is_in_limits(object: &Object) -> bool {
    let entries = match object {
        Object::String(text, _) => return text.len() <= MAX_STRING_BYTES,
        Object::Name(name) => return name.len() <= MAX_NAME_BYTES,
        Object::Array(items) => return items.iter().all(is_in_limits),
        Object::Dictionary(entries) => entries,
        Object::Stream(stream) => &stream.dict,
        _ => return true,
    };
    entries.iter().all(|(key, value)| key.len() <= MAX_NAME_BYTES && is_in_limits(value))
}
