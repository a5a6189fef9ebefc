//! Download file names: a short ASCII slug of any text.
//!
//! Invariant: a stem has 1 to 80 of `a-z`, `0-9` and `-`, and neither starts nor ends with `-`, so it
//! needs no escaping in a quoted header value or on a file system.

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

include!(concat!(env!("OUT_DIR"), "/ascii_pages.rs"));

/// Transliterates any character to lower-case ASCII letters, digits and hyphens as the `deunicode` crate does, whose table the
/// build script of this crate compresses. Caches the last page of it: most names are of one script.
#[derive(Default)]
struct Transliterator {
    page: Option<(u8, String)>,
}

impl Transliterator {
    /// Letters, digits and `-`; empty for characters without a transliteration, such as a combining accent.
    fn ascii(&mut self, character: char) -> &str {
        let code = u32::from(character);
        let number = INDEX[(code / PAGE_CHARS) as usize];
        if self.page.as_ref().is_none_or(|(cached, _)| *cached != number) {
            let text = miniz_oxide::inflate::decompress_to_vec(PAGES[usize::from(number)])
                .expect("the build script compressed this page");
            self.page = Some((number, String::from_utf8(text).expect("a page is ASCII")));
        }
        let (_, text) = self.page.as_ref().expect("the page was decompressed above");
        text.split('\n').nth((code % PAGE_CHARS) as usize).unwrap_or_default()
    }
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

    #[test]
    fn the_compressed_table_agrees_with_deunicode() {
        let mut transliterator = Transliterator::default();
        for character in '\0'..=char::MAX {
            let itself = character.to_string();
            let other = if character.is_ascii() {
                Some(itself.as_str())
            } else {
                deunicode::deunicode_char(character)
            };
            let expected = other.unwrap_or("-").to_ascii_lowercase();
            let expected = expected.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            assert_eq!(transliterator.ascii(character), expected, "{character:?}");
        }
    }
}
