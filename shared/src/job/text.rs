//! Texts of a job.

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD, read::DecoderReader};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    limits,
    name::Name,
    text::{InvalidText, kept, of_bytes, of_chars, texts},
};

texts! {
    /// Markup, which is not empty.
    Html = |text| of_bytes(kept(text, |text| !text.is_empty(), "must not be empty")?, limits::MAX_HTML_BYTES);
    /// The markup of a header or a footer.
    HeaderHtml = |text| of_bytes(text, limits::MAX_HEADER_BYTES);
    /// A style sheet.
    StyleText = |text| of_bytes(text, limits::MAX_CSS_BYTES);
    /// A CSS selector. Only the browser knows whether it is valid.
    Selector = |text| of_chars(text, 1, limits::MAX_SELECTOR_CHARS);
    /// A JavaScript expression. Only the browser knows whether it is valid.
    Expression = |text| of_chars(text, 1, limits::MAX_EXPRESSION_CHARS);
    /// A user agent of printable ASCII.
    UserAgent = |text| {
        let rule = format!("must have 1 to {} characters of printable ASCII", limits::MAX_USER_AGENT_CHARS);
        kept(text, is_user_agent, rule)
    };
    /// A text of the metadata, or the description of a file.
    MetadataText = |text| of_chars(text, 0, limits::MAX_METADATA_CHARS);
    /// A password of a PDF, which may be empty.
    #[derive(Default)]
    PdfPassword = |text| of_bytes(text, limits::MAX_PDF_PASSWORD_BYTES);
    /// A date and time of RFC 3339 to the second, in the form `2026-11-27T06:34:51+01:00`; UTC is `+00:00`.
    Date = date;
    /// Base64 of the standard alphabet with padding, without line breaks.
    Base64 = |text| {
        kept(text, is_base64, "must be base64 of the standard alphabet with padding, without line breaks")
    };
    /// The name of a file in a PDF, without a path.
    AttachmentName = |text| {
        let max = limits::MAX_ATTACHMENT_NAME_CHARS;
        let rule = format!(
            "must have 1 to {max} characters, no space at an end, and no \"/\", \"\\\", \":\", control or invisible character"
        );
        kept(text, is_file_name, rule)
    };
    /// A media type without parameters, such as `text/csv`.
    MimeType = |text| kept(text, is_media_type, "must be a media type without parameters, such as \"text/csv\"");
}

impl Base64 {
    /// The text of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(STANDARD.encode(bytes))
    }

    /// The number of bytes that it decodes to.
    #[must_use]
    pub fn decoded_bytes(&self) -> usize {
        let padding = self.0.bytes().rev().take_while(|byte| *byte == b'=').count();
        self.0.len() / 4 * 3 - padding
    }
}

/// Maximum length of a type, and of a subtype; RFC 6838, section 4.2.
const MAX_MIME_NAME_CHARS: usize = 127;

fn is_user_agent(text: &str) -> bool {
    (1..=limits::MAX_USER_AGENT_CHARS).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn date(text: String) -> Result<String, InvalidText> {
    // The parser accepts any character between date and time.
    let is_separated = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'));
    let parsed = is_separated.then(|| OffsetDateTime::parse(&text, &Rfc3339).ok()).flatten();
    let rule = "must be a date and time of RFC 3339, such as \"2026-11-27T06:34:51Z\"";
    let Some(it) = parsed else { return kept(text, |_| false, rule) };
    let ((hour, minute, second), (offset_hours, offset_minutes, _)) = (it.to_hms(), it.offset().as_hms());
    let sign = if it.offset().is_negative() { '-' } else { '+' };
    Ok(format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}{sign}{:02}:{:02}",
        it.year(),
        u8::from(it.month()),
        it.day(),
        offset_hours.abs(),
        offset_minutes.abs(),
    ))
}

fn is_base64(text: &str) -> bool {
    io::copy(&mut DecoderReader::new(text.as_bytes(), &STANDARD), &mut io::sink()).is_ok()
}

/// Whether this is a name as users see it, and no path: a colon follows the name of a drive, or begins that of a stream of a
/// file.
fn is_file_name(text: &str) -> bool {
    text.chars().count() <= limits::MAX_ATTACHMENT_NAME_CHARS
        && ![".", ".."].contains(&text)
        && !text.contains(['/', '\\', ':'])
        && text.trim() == text
        && Name::parse(text).is_ok()
}

/// Whether this is `type/subtype`, where both are restricted names of RFC 6838, without the `#` that writes other
/// characters in a name of PDF.
pub(super) fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        name.len() <= MAX_MIME_NAME_CHARS
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!$&-^_.+".contains(&byte))
    };
    text.split_once('/').is_some_and(|(of_type, subtype)| is_name(of_type) && is_name(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_real_and_have_an_offset() {
        let kept = |text: &str| Date::try_from(text.to_owned()).ok();
        for (text, expected) in [
            ("2026-11-27T06:34:51Z", "2026-11-27T06:34:51+00:00"),
            ("2024-02-29t23:59:59.999z", "2024-02-29T23:59:59+00:00"),
            ("2026-11-27T06:34:51-03:30", "2026-11-27T06:34:51-03:30"),
            ("2026-11-27T06:34:51-00:30", "2026-11-27T06:34:51-00:30"),
            ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        ] {
            let date = kept(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(date.as_str(), expected);
            assert_eq!(kept(expected), Some(date));
        }
        for text in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-27T24:00:00Z",
            "2026-11-27T06:34:51+24:00",
            "2026-11-27T06:34:51+0100",
            "2026-11-27T06:34:51Z ",
            "26-11-27T06:34:51Z",
            "2026-11-2\u{e9}T06:34:51Z",
        ] {
            assert_eq!(kept(text), None, "{text}");
        }
    }
}
