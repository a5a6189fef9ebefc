//! PDF/A-2b, PDF/A-3b (ISO 19005-2 and -3) and PDF/UA-1 (ISO 14289-1): what the browser's file lacks is added, and what
//! cannot be added is refused with its rule.

use std::collections::HashSet;

use lopdf::{Dictionary, Document, Object, Stream, content::Content, dictionary};
use platen_shared::job::{DocumentOptions, PdfStandard};

use super::{
    artifacts,
    metadata::{self, Property, Schema},
    origins::Reading,
    structure,
    texts::form_resources,
};
use crate::error::JobError;

/// ISO 19005-2, 6.1.13.
const MAX_STRING_BYTES: usize = 32_767;
const MAX_NAME_BYTES: usize = 127;
/// The ICC profile of sRGB: version 4.2 (ICC.1:2004-10) with the primaries and the white of IEC 61966-2-1, adapted to D50 by the
/// Bradford matrix, and its transfer function as a parametric curve. In the public domain.
const SRGB_PROFILE: &[u8] = include_bytes!("srgb.icc");

/// Makes the file conform to the standards that the options ask for, apart from its XMP packet.
pub(super) fn apply(
    document: &mut Document,
    options: &DocumentOptions,
    reading: &Reading,
) -> Result<(), JobError> {
    let archive = options.archive().is_some();
    if !archive && !options.standard.ua1 {
        return Ok(());
    }
    check_glyphs(document)?;
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
        let changes = structure::repair(document, reading)?;
        repair_characters(document)?;
        artifacts::mark(document, &changes)?;
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
    let profile = document.add_object(Stream::new(dictionary! { "N" => 3 }, SRGB_PROFILE.to_vec()));
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

/// Characters that a font must not name, in a `CMap`. The browser names them for joiners.
const FORBIDDEN: [&str; 3] = ["<0000>", "<FEFF>", "<FFFE>"];

/// Refuses characters that no font has (ISO 19005-2, 6.2.11.8; ISO 14289-1, 7.21.8). The browser draws a box for them, which
/// is glyph 0 of a font.
fn check_glyphs(document: &Document) -> Result<(), JobError> {
    for page in document.page_iter() {
        let fonts = document.get_page_resources(page)?.0;
        check_content(document, &document.get_page_content(page), fonts)?;
    }
    for form in document.objects.values().filter_map(|object| object.as_stream().ok()) {
        let resources = form_resources(document, form);
        if resources.is_some() {
            check_content(document, &form.get_plain_content()?, resources)?;
        }
    }
    Ok(())
}

fn check_content(
    document: &Document,
    content: &[u8],
    resources: Option<&Dictionary>,
) -> Result<(), JobError> {
    // The browser writes glyphs in hexadecimal, and most content has none that may be 0.
    if !content.windows(4).any(|digits| digits == b"0000") {
        return Ok(());
    }
    let fonts = resources.and_then(|it| it.get_deref(b"Font", document).and_then(Object::as_dict).ok());
    let is_wide = |font: &Object| {
        let font = document.dereference(font).and_then(|(_, font)| font.as_dict());
        font.and_then(|font| font.get(b"Subtype"))
            .and_then(Object::as_name)
            .is_ok_and(|kind| kind == b"Type0")
    };
    let wide = fonts.into_iter().flatten().filter(|(_, font)| is_wide(font));
    let wide: HashSet<&[u8]> = wide.map(|(name, _)| name.as_slice()).collect();
    let mut glyphs_are_wide = false;
    for operation in Content::decode(content)?.operations {
        match (operation.operator.as_str(), operation.operands.first()) {
            ("Tf", Some(font)) => glyphs_are_wide = font.as_name().is_ok_and(|font| wide.contains(font)),
            ("Tj" | "TJ", Some(text)) if glyphs_are_wide && has_glyph_0(text) => {
                return Err(JobError::standard_not_met("each character needs a font that has it"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_glyph_0(text: &Object) -> bool {
    match text {
        Object::String(glyphs, _) => glyphs.chunks(2).any(|glyph| glyph == [0, 0]),
        Object::Array(texts) => texts.iter().any(has_glyph_0),
        _ => false,
    }
}

/// Replaces the characters that a font must not name by U+FFFD (ISO 14289-1, 7.21.7).
fn repair_characters(document: &mut Document) -> lopdf::Result<()> {
    let maps = document.objects.values().filter_map(|font| font.as_dict().ok()?.get(b"ToUnicode").ok());
    for map in maps.filter_map(|map| map.as_reference().ok()).collect::<Vec<_>>() {
        let stream = document.get_object_mut(map).and_then(Object::as_stream_mut)?;
        let text = String::from_utf8_lossy(&stream.get_plain_content()?).into_owned();
        // The character is the last item of its line.
        let repaired: Vec<String> = text.split('\n').map(repaired).collect();
        let repaired = repaired.join("\n");
        if repaired != text {
            stream.set_plain_content(repaired.into_bytes());
            stream.compress()?;
        }
    }
    Ok(())
}

fn repaired(line: &str) -> String {
    let forbidden = FORBIDDEN.iter().find_map(|it| line.strip_suffix(it));
    // The line of the range of codes has two items, those of characters have two or three.
    match forbidden {
        Some(before) if !before.is_empty() && line != "<0000> <FFFF>" => format!("{before}<FFFD>"),
        _ => line.to_owned(),
    }
}
