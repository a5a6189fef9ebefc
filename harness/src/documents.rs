//! Sections of the documents that are generated from the code.

use std::{env, fs};

use crate::settings::tests_dir;

/// Compares a section of `docs/DOCUMENT`, which is enclosed in `<!-- NAME:begin -->` and `<!-- NAME:end -->`, with its
/// generated text. With `UPDATE_DOCS` in the environment the section is replaced instead.
///
/// # Panics
/// If the section differs or does not exist.
pub fn check_section(document: &str, name: &str, generated: &str) {
    let path = tests_dir().join("../docs").join(document);
    let text = fs::read_to_string(&path).expect("the document is readable");
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let (before, rest) = text.split_once(&begin).expect("the section begins");
    let (section, after) = rest.split_once(&end).expect("the section ends");
    if section != generated {
        check(document, &format!("{before}{begin}{generated}{end}{after}"));
    }
}

/// Compares `docs/DOCUMENT` with its generated text, as [`check_section`].
///
/// # Panics
/// If it differs.
pub fn check(document: &str, generated: &str) {
    let path = tests_dir().join("../docs").join(document);
    if fs::read_to_string(&path).is_ok_and(|text| text == generated) {
        return;
    }
    assert!(
        env::var_os("UPDATE_DOCS").is_some(),
        "docs/{document} is out of date: run UPDATE_DOCS=1 cargo test --workspace --lib --bins -- documented"
    );
    fs::write(path, generated).expect("the document is writable");
}
