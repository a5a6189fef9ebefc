//! Accepted differences and their reasons, from `bench/corpus/accepted.json`.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::page::Mode;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    page: String,
    /// Name of a mode; each of its parts may be `*`, as in `png-second-*`.
    mode: String,
    reason: String,
}

/// The content of the file.
#[derive(Debug, Deserialize)]
pub(super) struct AcceptedDifferences(Vec<Entry>);

impl AcceptedDifferences {
    pub(super) fn read(file: &Path) -> Result<Self> {
        Self::parse(&fs::read_to_string(file)?).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let accepted: Self = serde_json::from_str(text)?;
        for entry in &accepted.0 {
            ensure!(!entry.reason.trim().is_empty(), "{} has no reason", entry.page);
            ensure!(entry.mode.split('-').count() == 3, "{} is not a mode", entry.mode);
        }
        Ok(accepted)
    }

    /// The reason why this page may differ in this mode, if it may.
    pub(super) fn reason(&self, page: &str, mode: Mode) -> Option<&str> {
        let name = mode.to_string();
        let matches = |entry: &&Entry| {
            let mut parts = entry.mode.split('-').zip(name.split('-'));
            entry.page == page && parts.all(|(pattern, part)| pattern == "*" || pattern == part)
        };
        self.0.iter().find(matches).map(|entry| entry.reason.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::page::{Format, Milestone, Source};

    #[test]
    fn an_entry_matches_only_the_modes_that_it_names() {
        let text = r#"[{"page": "a", "mode": "png-*-url", "reason": "because"}]"#;
        let accepted = AcceptedDifferences::parse(text).unwrap();
        let mode = |format, source| Mode { format, wait: Milestone::Load, source };
        assert_eq!(accepted.reason("a", mode(Format::Png, Source::Url)), Some("because"));
        assert_eq!(accepted.reason("a", mode(Format::Png, Source::Html)), None);
        assert_eq!(accepted.reason("a", mode(Format::Pdf, Source::Url)), None);
        assert_eq!(accepted.reason("b", mode(Format::Png, Source::Url)), None);
    }

    #[test]
    fn an_entry_needs_a_reason() {
        AcceptedDifferences::parse(r#"[{"page": "a", "mode": "png-*-url", "reason": " "}]"#).unwrap_err();
        AcceptedDifferences::parse(r#"[{"page": "a", "mode": "png", "reason": "because"}]"#).unwrap_err();
    }
}
