//! Packs the transliteration table of the `deunicode` crate for file names.
//!
//! As it ships, the table is 480 KB of every edge component, which travels to every region. Here
//! each character's transliteration is reduced to what a file name keeps (`a-z`, `0-9`, `-`),
//! and pages of 512 characters are deflated: 130 KB, and a name unpacks one to three pages.

use std::{collections::HashMap, env, fmt::Write as _, fs, path::Path};

const PAGE_CHARS: u32 = 512;
const CODE_POINTS: u32 = 0x11_0000;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut pages: Vec<Vec<u8>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut index: Vec<u8> = Vec::new();
    for start in (0..CODE_POINTS).step_by(PAGE_CHARS as usize) {
        let text: String = (start..start + PAGE_CHARS).map(|code| slug_of(code) + "\n").collect();
        let page = *known.entry(text).or_insert_with_key(|text| {
            pages.push(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 10));
            pages.len() - 1
        });
        index.push(u8::try_from(page).expect("the table has fewer than 256 different pages"));
    }
    let mut source = String::new();
    writeln!(source, "const PAGE_CHARS: u32 = {PAGE_CHARS};").expect("a string takes everything");
    writeln!(source, "static INDEX: &[u8] = &{index:?};").expect("a string takes everything");
    writeln!(source, "static PAGES: &[&[u8]] = &[").expect("a string takes everything");
    for page in &pages {
        writeln!(source, "    b\"{}\",", page.escape_ascii()).expect("a string takes everything");
    }
    source.push_str("];\n");
    let directory = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&directory).join("ascii_pages.rs"), source).expect("OUT_DIR can be written");
}

/// What one character adds to a slug: lower-case letters, digits, and `-` for everything else.
/// A character that only marks another, such as an accent on its own, adds nothing.
fn slug_of(code: u32) -> String {
    let own = char::from_u32(code).filter(char::is_ascii).map(String::from);
    let other = || char::from_u32(code).and_then(deunicode::deunicode_char).unwrap_or("-").to_owned();
    own.unwrap_or_else(other)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}
