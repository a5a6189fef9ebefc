//! PDF/A-2b, PDF/A-3b (ISO 19005-2 and -3) and PDF/UA-1 (ISO 14289-1): what the browser's file lacks is added, and what
//! cannot be added is refused with its rule.

use std::collections::HashSet;

use lopdf::{Dictionary, Document, Object, Stream, content::Content, dictionary};
use platen_shared::job::{DocumentOptions, PdfStandard};

use super::{
    artifacts,
    metadata::{self, Property, Schema},
    structure,
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
        structure::repair(document)?;
        repair_characters(document)?;
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
    let profile = document.add_object(Stream::new(dictionary! { "N" => 3 }, srgb_profile()));
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
        let resources = form.dict.get_deref(b"Resources", document).and_then(Object::as_dict);
        if let Ok(resources) = resources {
            check_content(document, &form.get_plain_content()?, Some(resources))?;
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

/// White of the profile connection space (D50), in 65,536ths.
const WHITE: [i32; 3] = [0xf6d6, 0x1_0000, 0xd32d];
const RED: [i32; 3] = [0x6fa2, 0x38f5, 0x0390];
const GREEN: [i32; 3] = [0x6299, 0xb785, 0x18da];
const BLUE: [i32; 3] = [0x24a0, 0x0f84, 0xb6cf];
/// From D65 to D50.
const ADAPTATION: [i32; 9] = [68_674, 1_502, -3_291, 1_939, 64_912, -1_119, -606, 988, 49_262];
/// Exponent, scale and offset of the curve, slope of its line and end of that.
const CURVE: [i32; 5] = [157_286, 62_119, 3_417, 5_072, 2_651];

const HEADER_BYTES: usize = 128;

/// The ICC profile of sRGB (IEC 61966-2-1), as ICC.1:2004-10 defines profiles: version 4 with a parametric curve. Its numbers
/// are the primaries and the white, adapted to D50 by the Bradford matrix, and the transfer function.
fn srgb_profile() -> Vec<u8> {
    let curve = element(*b"para", &[&[0, 3, 0, 0], &numbers(&CURVE)[..]].concat());
    let tags = [
        (b"desc", text("sRGB")),
        (b"cprt", text("Public domain")),
        (b"wtpt", element(*b"XYZ ", &numbers(&WHITE))),
        (b"chad", element(*b"sf32", &numbers(&ADAPTATION))),
        (b"rXYZ", element(*b"XYZ ", &numbers(&RED))),
        (b"gXYZ", element(*b"XYZ ", &numbers(&GREEN))),
        (b"bXYZ", element(*b"XYZ ", &numbers(&BLUE))),
        (b"rTRC", curve.clone()),
        (b"gTRC", curve.clone()),
        (b"bTRC", curve),
    ];
    let mut table = number(tags.len()).to_vec();
    let mut elements = Vec::new();
    let first = HEADER_BYTES + table.len() + 12 * tags.len();
    for (name, element) in &tags {
        table.extend_from_slice(*name);
        table.extend(number(first + elements.len()));
        table.extend(number(element.len()));
        elements.extend(element);
        elements.resize(elements.len().next_multiple_of(4), 0);
    }
    let mut profile = Vec::new();
    profile.extend(number(first + elements.len()));
    profile.extend([0; 4]);
    // Version 4.2, display, 1 January 2026.
    profile.extend(b"\x04\x20\0\0mntrRGB XYZ \x07\xea\0\x01\0\x01\0\0\0\0\0\0acsp");
    profile.resize(68, 0);
    profile.extend(numbers(&WHITE));
    profile.resize(HEADER_BYTES, 0);
    [profile, table, elements].concat()
}

fn element(kind: [u8; 4], content: &[u8]) -> Vec<u8> {
    [&kind[..], &[0; 4], content].concat()
}

/// A text in one language (`multiLocalizedUnicodeType`).
fn text(text: &str) -> Vec<u8> {
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let record = [number(1), number(12), *b"enUS", number(utf16.len()), number(28)].concat();
    element(*b"mluc", &[record, utf16].concat())
}

fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_srgb_has_its_length_and_the_white_of_its_primaries() {
        let profile = srgb_profile();
        assert_eq!(profile[..4], number(profile.len()));
        assert_eq!(profile[36..40], *b"acsp");
        for ((red, green), (blue, white)) in RED.iter().zip(GREEN).zip(BLUE.iter().zip(WHITE)) {
            // The sums of the published primaries, which are rounded to four digits, differ by up to 12.
            assert!((red + green + blue - white).abs() <= 12);
        }
    }
}
