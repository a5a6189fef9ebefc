//! Any character as the lower-case ASCII letters, digits and hyphens that stand for it.
//!
//! Invariant: agrees with the `deunicode` crate for every character; the table is packed by this
//! crate's build script, which says why.

include!(concat!(env!("OUT_DIR"), "/ascii_pages.rs"));

/// Unpacks pages of the table, and keeps the last one: a name is mostly of one script.
#[derive(Default)]
pub(super) struct Transliterator {
    page: Option<(u8, String)>,
}

impl Transliterator {
    /// Letters, digits and `-` only; may be empty, for characters that stand for nothing.
    pub(super) fn ascii(&mut self, character: char) -> &str {
        let code = u32::from(character);
        let number = INDEX[(code / PAGE_CHARS) as usize];
        if self.page.as_ref().is_none_or(|(held, _)| *held != number) {
            let text = miniz_oxide::inflate::decompress_to_vec(PAGES[usize::from(number)])
                .expect("the build script packed this page");
            self.page = Some((number, String::from_utf8(text).expect("a page is ASCII")));
        }
        let (_, text) = self.page.as_ref().expect("a page was just unpacked");
        text.split('\n').nth((code % PAGE_CHARS) as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_table_agrees_with_the_crate_it_is_made_of() {
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
