//! Transliteration of any character to lower-case ASCII letters, digits and hyphens.
//!
//! Invariant: the result is that of the `deunicode` crate for every character. The build script of this
//! crate compresses its table.

include!(concat!(env!("OUT_DIR"), "/ascii_pages.rs"));

/// Decompresses pages of the table, and caches the last one: most names are of one script.
#[derive(Default)]
pub(super) struct Transliterator {
    page: Option<(u8, String)>,
}

impl Transliterator {
    /// Letters, digits and `-`; empty for characters without a transliteration, such as a combining accent.
    pub(super) fn ascii(&mut self, character: char) -> &str {
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
