//! Markdown sections and numbers.
//!
//! Invariant: a section is replaced between its markers, and the rest of the file is unchanged.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

/// Replaces the section between its markers, or appends it with markers where the file has none.
pub(super) fn replace_section(file: &Path, name: &str, section: &str) -> Result<()> {
    let text = fs::read_to_string(file).unwrap_or_else(|_| "# Results\n".to_owned());
    fs::write(file, with_section(&text, name, section))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn with_section(text: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let section = format!("{begin}\n{}\n{end}", section.trim());
    let parts = text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    match parts {
        Some((before, after)) => format!("{before}{section}{after}"),
        None => format!("{}\n\n{section}\n", text.trim_end()),
    }
}

/// A number, or a dash where nothing was measured.
pub(super) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_appended_and_then_replaced() {
        let text = with_section("# Results\n\nedge\n", "peers", "one");
        assert_eq!(text, "# Results\n\nedge\n\n<!-- peers:begin -->\none\n<!-- peers:end -->\n");
        let text = with_section(&format!("{text}\nafter\n"), "peers", "two\n");
        assert_eq!(text, "# Results\n\nedge\n\n<!-- peers:begin -->\ntwo\n<!-- peers:end -->\n\nafter\n");
    }

    #[test]
    fn a_missing_number_is_a_dash() {
        assert_eq!(number(None, 1), "–");
        assert_eq!(number(Some(1.25), 1), "1.2");
    }
}
