//! The verdict on a page in one mode, the differences that `bench/corpus/accepted.json` accepts, and the report.
//!
//! Invariant: only equality, and a difference that the page's own changes explain, is not a failure.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{
    Case,
    page::{Milestone, Mode},
    rendered::{Difference, Rendered},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Both rounds and the reference are equal.
    Equal,
    /// The reference is equal after this many additional milliseconds.
    EqualLater(u32),
    /// The page continues to change after this milestone, also in the reference. The final states are equal.
    Changing,
    /// The reference differs at `load`, when a page may still change.
    AtLoad(Difference),
    /// A job failed.
    Failed(String),
    /// The two rounds of the farm differ.
    Unstable(Difference),
    /// The reference differs, also after longer waits.
    Different(Difference),
}

impl Verdict {
    /// Whether `accepted.json` must contain the page.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Unstable(_) | Self::Different(_))
    }

    /// The description of its kind in the report.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Equal => "equal in both rounds and the reference",
            Self::EqualLater(_) => "equal after a longer wait of the reference",
            Self::Changing => "still changing, also in the reference; final states equal",
            Self::AtLoad(_) => "equal in both rounds; the reference differs at load",
            Self::Failed(_) => "FAILED",
            Self::Unstable(_) => "UNSTABLE: the two rounds differ",
            Self::Different(_) => "DIFFERENT from the reference",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EqualLater(ms) => write!(f, "after {ms} additional ms"),
            Self::AtLoad(difference) | Self::Unstable(difference) | Self::Different(difference) => {
                difference.fmt(f)
            }
            Self::Failed(reason) => f.write_str(reason),
            Self::Equal | Self::Changing => Ok(()),
        }
    }
}

/// The file of a job, or why it failed.
pub(super) type Outcome = std::result::Result<Rendered, String>;

/// The verdict on two rounds and the reference, or the difference where a longer wait may explain it.
pub(super) fn compare_rounds(
    rounds: [&Outcome; 2],
    reference: &Outcome,
    wait: Milestone,
) -> Result<std::result::Result<Verdict, Difference>> {
    let [one, other] = rounds;
    let (one, other) = match (one, other) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(reason), _) | (_, Err(reason)) => return Ok(Ok(Verdict::Failed(format!("farm: {reason}")))),
    };
    if let Some(difference) = one.difference(other)? {
        return Ok(Ok(Verdict::Unstable(difference)));
    }
    let reference = match reference {
        Err(reason) => return Ok(Ok(Verdict::Failed(format!("reference: {reason}")))),
        Ok(reference) => reference,
    };
    Ok(match one.difference(reference)? {
        None => Ok(Verdict::Equal),
        Some(difference) if wait == Milestone::Load => Ok(Verdict::AtLoad(difference)),
        Some(difference) => Err(difference),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    page: String,
    /// Name of a mode; each of its parts may be `*`, as in `png-second-*`.
    mode: String,
    reason: String,
}

/// The content of `accepted.json`.
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

/// Prints every verdict except equality, then the number of verdicts of each kind at each milestone, and
/// returns the number of failures that are not accepted.
pub(super) fn report(accepted: &AcceptedDifferences, cases: &[Case], verdicts: &[Verdict]) -> usize {
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut failures = 0;
    for ((page, mode), verdict) in cases.iter().zip(verdicts) {
        let page = &page.name;
        let mut kind = verdict.kind();
        if verdict.is_failure() {
            match accepted.reason(page, *mode) {
                Some(reason) => {
                    println!("{page} {mode}: accepted, {reason}: {verdict}");
                    kind = "accepted, with a reason in bench/corpus/accepted.json";
                }
                None => failures += 1,
            }
        }
        kinds.entry(kind).or_default()[mode.wait as usize] += 1;
        if kind == verdict.kind() && *verdict != Verdict::Equal {
            println!("{page} {mode}: {kind}: {verdict}");
        }
    }
    println!("\n  load   idle second");
    for (kind, [load, idle, second]) in kinds {
        println!("{load:6} {idle:6} {second:6} {kind}");
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::page::{Format, Source};

    fn document(text: &str) -> Rendered {
        Rendered::Document { pdf: bytes::Bytes::new(), pages: 1, text: text.to_owned() }
    }

    #[test]
    fn rounds_are_compared_before_the_reference() {
        let [a, b]: [Outcome; 2] = ["a", "b"].map(|text| Ok(document(text)));
        let verdict = |one, other, reference, wait| compare_rounds([one, other], reference, wait).unwrap();
        assert_eq!(verdict(&a, &a, &a, Milestone::Second), Ok(Verdict::Equal));
        assert!(matches!(verdict(&a, &b, &a, Milestone::Load), Ok(Verdict::Unstable(_))));
        assert!(matches!(verdict(&a, &a, &b, Milestone::Load), Ok(Verdict::AtLoad(_))));
        assert!(verdict(&a, &a, &b, Milestone::Second).is_err());
        let failed = Err("503".to_owned());
        assert!(verdict(&a, &failed, &a, Milestone::Load).is_ok_and(|verdict| verdict.is_failure()));
        assert!(verdict(&a, &a, &failed, Milestone::Load).is_ok_and(|verdict| verdict.is_failure()));
    }

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
