//! Compresses the transliteration table of the `deunicode` crate for file names.
//!
//! The original table adds 480 KB to every edge component, which is distributed to every region. This
//! script reduces each transliteration to the characters of a file name (`a-z`, `0-9`, `-`), and deflates
//! pages of 512 characters: 130 KB in all, and a name needs one to three pages.

use std::{collections::HashMap, env, fmt::Write as _, fs, path::Path};

const PAGE_CHARS: u32 = 512;
const CODE_POINTS: u32 = 0x11_0000;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut pages: Vec<Vec<u8>> = Vec::new();
    let mut page_numbers: HashMap<String, usize> = HashMap::new();
    let mut index: Vec<u8> = Vec::new();
    for start in (0..CODE_POINTS).step_by(PAGE_CHARS as usize) {
        let text: String = (start..start + PAGE_CHARS).map(|code| slug_of(code) + "\n").collect();
        let page = *page_numbers.entry(text).or_insert_with_key(|text| {
            pages.push(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 10));
            pages.len() - 1
        });
        index.push(u8::try_from(page).expect("the table has fewer than 256 distinct pages"));
    }
    let mut source = String::new();
    writeln!(source, "const PAGE_CHARS: u32 = {PAGE_CHARS};").expect("writing to a string cannot fail");
    writeln!(source, "static INDEX: &[u8] = &{index:?};").expect("writing to a string cannot fail");
    writeln!(source, "static PAGES: &[&[u8]] = &[").expect("writing to a string cannot fail");
    for page in &pages {
        writeln!(source, "    b\"{}\",", page.escape_ascii()).expect("writing to a string cannot fail");
    }
    source.push_str("];\n");
    let directory = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&directory).join("ascii_pages.rs"), source).expect("OUT_DIR is writable");
}

/// The part of a slug that one character yields: lower-case letters, digits, and `-` for everything else.
/// A combining character, such as an accent, yields nothing.
fn slug_of(code: u32) -> String {
    let ascii = char::from_u32(code).filter(char::is_ascii).map(String::from);
    let transliterated =
        || char::from_u32(code).and_then(deunicode::deunicode_char).unwrap_or("-").to_owned();
    ascii
        .unwrap_or_else(transliterated)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}
