//! Download file names: a short ASCII slug of any text.
//!
//! Invariant: a stem has 1 to 80 of `a-z`, `0-9` and `-`, and neither starts nor ends with `-`, so it
//! needs no escaping in a quoted header value or on a file system.

mod ascii;

use ascii::Transliterator;

use crate::{format::OutputFormat, limits};

/// The stem where no candidate yields one.
pub const DEFAULT_STEM: &str = "render";

/// Transliterates to ASCII in lower case, replaces every run of other characters by one `-`, cuts to
/// [`limits::MAX_FILE_STEM_CHARS`], and removes `-` from both ends. `None` if the result is empty.
#[must_use]
pub fn slugify(text: &str) -> Option<String> {
    let mut transliterator = Transliterator::default();
    let mut slug = String::new();
    for character in text.chars() {
        if slug.len() > limits::MAX_FILE_STEM_CHARS {
            break;
        }
        for letter in transliterator.ascii(character).chars() {
            if letter != '-' {
                slug.push(letter);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
    }
    slug.truncate(limits::MAX_FILE_STEM_CHARS);
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

/// The `content-disposition` of a file: the slug of the first of `candidates` that has one, else
/// [`DEFAULT_STEM`], with the extension of the format.
#[must_use]
pub fn content_disposition(candidates: &[Option<&str>], format: OutputFormat) -> String {
    let stem =
        candidates.iter().flatten().find_map(|text| slugify(text)).unwrap_or_else(|| DEFAULT_STEM.to_owned());
    format!("attachment; filename=\"{stem}.{}\"", format.extension())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ImageFormat;

    #[test]
    fn names_become_slugs() {
        let table = [
            ("Invoice 2026", Some("invoice-2026")),
            ("  --Ünïcödé & Söhne--  ", Some("unicode-sohne")),
            ("Straße", Some("strasse")),
            ("北京", Some("bei-jing")),
            ("../../etc/passwd", Some("etc-passwd")),
            ("C:\\temp\\x.pdf", Some("c-temp-x-pdf")),
            ("a\r\nset-cookie: x", Some("a-set-cookie-x")),
            ("\"quoted\"", Some("quoted")),
            ("a\0b", Some("a-b")),
            ("***", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(slugify(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_stem_is_cut_to_80_and_trimmed_again() {
        assert_eq!(slugify(&"a".repeat(160)).unwrap().len(), 80);
        assert_eq!(slugify(&format!("{}-b", "a".repeat(79))).unwrap(), "a".repeat(79));
        assert_eq!(slugify(&format!("--{}-b", "a".repeat(80))).unwrap(), "a".repeat(80));
    }

    #[test]
    fn the_first_name_with_a_slug_wins() {
        let png = OutputFormat::Image(ImageFormat::Png);
        assert_eq!(content_disposition(&[None], png), "attachment; filename=\"render.png\"");
        assert_eq!(content_disposition(&[Some("!"), Some("My T")], png), "attachment; filename=\"my-t.png\"");
        assert_eq!(
            content_disposition(&[Some("A"), Some("B")], OutputFormat::Image(ImageFormat::Jpeg)),
            "attachment; filename=\"a.jpg\""
        );
    }
}
