//! The verdict on a page in one mode.
//!
//! Invariant: only equality, and a difference that the page's own changes explain, is not a failure.

use std::fmt;

use super::{
    page::Milestone,
    rendered::{Difference, Rendered},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Both rounds are equal; there was no reference.
    Repeated,
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
            Self::Repeated => "equal in both rounds",
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
            Self::Repeated | Self::Equal | Self::Changing => Ok(()),
        }
    }
}

/// The file of a job, or why it failed.
pub(super) type Outcome = Result<Rendered, String>;

/// The verdict on two rounds and the reference, or the difference where a longer wait may explain it.
pub(super) fn compare_rounds(
    rounds: [&Outcome; 2],
    reference: Option<&Outcome>,
    wait: Milestone,
) -> anyhow::Result<Result<Verdict, Difference>> {
    let [one, other] = rounds;
    let (one, other) = match (one, other) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(reason), _) | (_, Err(reason)) => return Ok(Ok(Verdict::Failed(format!("farm: {reason}")))),
    };
    if let Some(difference) = one.difference(other)? {
        return Ok(Ok(Verdict::Unstable(difference)));
    }
    let reference = match reference {
        None => return Ok(Ok(Verdict::Repeated)),
        Some(Err(reason)) => return Ok(Ok(Verdict::Failed(format!("reference: {reason}")))),
        Some(Ok(reference)) => reference,
    };
    Ok(match one.difference(reference)? {
        None => Ok(Verdict::Equal),
        Some(difference) if wait == Milestone::Load => Ok(Verdict::AtLoad(difference)),
        Some(difference) => Err(difference),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Rendered {
        Rendered::Document { pdf: bytes::Bytes::new(), text: text.to_owned() }
    }

    #[test]
    fn rounds_are_compared_before_the_reference() {
        let [a, b]: [Outcome; 2] = ["a", "b"].map(|text| Ok(document(text)));
        let verdict = |one, other, reference, wait| compare_rounds([one, other], reference, wait).unwrap();
        assert_eq!(verdict(&a, &a, Some(&a), Milestone::Second), Ok(Verdict::Equal));
        assert_eq!(verdict(&a, &a, None, Milestone::Second), Ok(Verdict::Repeated));
        assert!(matches!(verdict(&a, &b, Some(&a), Milestone::Load), Ok(Verdict::Unstable(_))));
        assert!(matches!(verdict(&a, &a, Some(&b), Milestone::Load), Ok(Verdict::AtLoad(_))));
        assert!(verdict(&a, &a, Some(&b), Milestone::Second).is_err());
        let failed = Err("503".to_owned());
        assert!(verdict(&a, &failed, Some(&a), Milestone::Load).is_ok_and(|verdict| verdict.is_failure()));
        assert!(verdict(&a, &a, Some(&failed), Milestone::Load).is_ok_and(|verdict| verdict.is_failure()));
    }
}
