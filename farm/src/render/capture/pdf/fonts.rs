//! The fonts of a file as the standards ask for them.

use std::collections::HashSet;

use lopdf::{Dictionary, Document, Object, content::Content};

use crate::error::JobError;

/// Characters that a font must not name, in a `CMap`. The browser names them for joiners.
const FORBIDDEN: [&str; 3] = ["<0000>", "<FEFF>", "<FFFE>"];

/// Refuses characters that no font has (ISO 19005-2, 6.2.11.8; ISO 14289-1, 7.21.8). The browser draws a box for them, which
/// is glyph 0 of a font.
pub(super) fn check_glyphs(document: &Document) -> Result<(), JobError> {
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
pub(super) fn repair_characters(document: &mut Document) -> lopdf::Result<()> {
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
