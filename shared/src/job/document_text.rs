//! Texts of the options of a PDF that have a form of their own.

use std::{fmt, io};

use base64::{engine::general_purpose::STANDARD, read::DecoderReader};
use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::limits;

/// Types of text, each with its error, the rule, and a function that gives the text as it is kept; `None` if the rule is
/// broken. `Debug` shows the size only, because content of the caller must not appear in logs.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident, $error:ident ($($rule:tt)*), $kept:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        #[doc = concat!("Text that is no [`", stringify!($name), "`].")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[error($($rule)*)]
        pub struct $error;

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} bytes)"), self.0.len())
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                let kept: fn(String) -> Option<String> = $kept;
                kept(text).map(Self).ok_or($error)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }
    )*};
}

texts! {
    /// A date and time of RFC 3339 to the second, in the form `2026-11-27T06:34:51+01:00`; UTC is `+00:00`.
    Date, InvalidDate ("must be a date and time of RFC 3339, such as \"2026-11-27T06:34:51Z\""),
        |text| rfc_3339(&text);
    /// Base64 of the standard alphabet with padding, without line breaks.
    Base64, InvalidBase64 ("must be base64 of the standard alphabet with padding, without line breaks"),
        |text| is_base64(&text).then_some(text);
    /// The name of a file in a PDF, without a path.
    AttachmentName, InvalidAttachmentName (
        "must have 1 to {} characters, and no \"/\", \"\\\" or control character", limits::MAX_ATTACHMENT_NAME_CHARS
    ), |text| is_file_name(&text).then_some(text);
    /// A media type without parameters, such as `text/csv`.
    MimeType, InvalidMimeType ("must be a media type without parameters, such as \"text/csv\""),
        |text| is_media_type(&text).then_some(text);
}

impl Base64 {
    /// The number of bytes that it decodes to.
    #[must_use]
    pub fn decoded_bytes(&self) -> usize {
        let padding = self.0.bytes().rev().take_while(|byte| *byte == b'=').count();
        self.0.len() / 4 * 3 - padding
    }
}

/// Maximum length of a type, and of a subtype; RFC 6838, section 4.2.
const MAX_MIME_NAME_CHARS: usize = 127;

fn rfc_3339(text: &str) -> Option<String> {
    // The parser accepts any character between date and time.
    let is_separated = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'));
    let it = is_separated.then(|| OffsetDateTime::parse(text, &Rfc3339).ok()).flatten()?;
    let ((hour, minute, second), (offset_hours, offset_minutes, _)) = (it.to_hms(), it.offset().as_hms());
    let sign = if it.offset().is_negative() { '-' } else { '+' };
    Some(format!(
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

fn is_file_name(text: &str) -> bool {
    (1..=limits::MAX_ATTACHMENT_NAME_CHARS).contains(&text.chars().count())
        && ![".", ".."].contains(&text)
        && !text.contains(|character: char| matches!(character, '/' | '\\') || character.is_control())
}

/// Whether this is `type/subtype`, where both are restricted names of RFC 6838.
fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        name.len() <= MAX_MIME_NAME_CHARS
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.split_once('/').is_some_and(|(of_type, subtype)| is_name(of_type) && is_name(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept<T: TryFrom<String>>(text: &str) -> Option<T> {
        T::try_from(text.to_owned()).ok()
    }

    #[test]
    fn dates_are_real_and_have_an_offset() {
        for (text, expected) in [
            ("2026-11-27T06:34:51Z", "2026-11-27T06:34:51+00:00"),
            ("2024-02-29t23:59:59.999z", "2024-02-29T23:59:59+00:00"),
            ("2026-11-27T06:34:51-03:30", "2026-11-27T06:34:51-03:30"),
            ("2026-11-27T06:34:51-00:30", "2026-11-27T06:34:51-00:30"),
            ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        ] {
            let date: Date = kept(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(date.as_str(), expected);
            assert_eq!(kept::<Date>(expected), Some(date));
        }
        for text in [
            "",
            "2026-11-27",
            "2026-11-27T06:34:51",
            "2026-11-27 06:34:51Z",
            "2026-11-27T06:34Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-27T24:00:00Z",
            "2026-11-27T06:34:51+24:00",
            "2026-11-27T06:34:51+0100",
            "2026-11-27T06:34:51Z ",
            "26-11-27T06:34:51Z",
            "2026-11-2\u{e9}T06:34:51Z",
        ] {
            assert_eq!(kept::<Date>(text), None, "{text}");
        }
    }

    #[test]
    fn base64_is_strict() {
        for (text, bytes) in [("", 0), ("QQ==", 1), ("QUI=", 2), ("QUJD", 3), ("+/+/", 3), ("QUJDQQ==", 4)] {
            assert_eq!(kept::<Base64>(text).map(|text| text.decoded_bytes()), Some(bytes), "{text}");
        }
        for text in [
            "Q", "QQ", "QQ=", "QUI", "QUJDQ", "QR==", "QUJ=", "Q=Q=", "====", "QQ==QQ==", "-_-_", "QU JD",
            "QUJD\n", "é===",
        ] {
            assert_eq!(kept::<Base64>(text), None, "{text}");
        }
    }

    #[test]
    fn names_have_no_path() {
        let long = "é".repeat(limits::MAX_ATTACHMENT_NAME_CHARS);
        for text in ["a", "Rechnung März.pdf", "...", " ", &long] {
            assert_eq!(kept::<AttachmentName>(text).unwrap().as_str(), text);
        }
        for text in ["", ".", "..", "a/b", "a\\b", "a\nb", "a\u{0}", &format!("{long}a")] {
            assert_eq!(kept::<AttachmentName>(text), None, "{text:?}");
        }
    }

    #[test]
    fn media_types_have_no_parameters() {
        for text in ["text/csv", "application/vnd.a-b+xml", "A/1", &format!("a/{}", "b".repeat(127))] {
            assert_eq!(kept::<MimeType>(text).unwrap().as_str(), text);
        }
        for text in
            ["", "text", "/csv", "text/", "text/csv; charset=utf-8", "text/c sv", "a/b/c", "*/*", "t\u{e9}/a"]
        {
            assert_eq!(kept::<MimeType>(text), None, "{text}");
        }
    }
}
