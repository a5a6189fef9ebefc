//! Download file names: a short ASCII slug of any text.
//!
//! Invariant: a stem has 1 to 80 of `a-z`, `0-9` and `-`, and neither starts nor ends with `-`, so it
//! needs no escaping in a quoted header value or on a file system.

use deunicode::deunicode_char;

use crate::{format::OutputFormat, limits};

/// The stem where no candidate yields one.
pub const DEFAULT_STEM: &str = "render";

/// Transliterates to ASCII in lower case, replaces every run of other characters by one `-`, cuts to
/// [`limits::MAX_FILE_STEM_CHARS`], and removes `-` from both ends. `None` if the result is empty.
#[must_use]
pub fn slugify(text: &str) -> Option<String> {
    let mut slug = String::new();
    let mut buffer = [0; 1];
    for character in text.chars() {
        if slug.len() > limits::MAX_FILE_STEM_CHARS {
            break;
        }
        let letters = if character.is_ascii() {
            character.encode_utf8(&mut buffer)
        } else {
            // Empty for a combining character, such as an accent.
            deunicode_char(character).unwrap_or("-")
        };
        for letter in letters.chars() {
            if letter.is_ascii_alphanumeric() {
                slug.push(letter.to_ascii_lowercase());
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
