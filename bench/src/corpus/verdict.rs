//! What a comparison says about a page in one mode.
//!
//! Invariant: only what is equal, accepted with a reason, or explained by the page's own movement is no
//! failure.

use std::fmt;

use super::{
    page::Milestone,
    rendered::{Difference, Rendered},
};

/// How a page came out in one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Both rounds gave the same; there was no reference.
    Repeated,
    /// Both rounds and the reference gave the same.
    Equal,
    /// The reference needed so many milliseconds more.
    EqualLater(u32),
    /// In the reference, too, the page goes on changing after this milestone. Both end equal.
    Moving,
    /// At `load`, which is no state of rest, the reference shows something else.
    AtLoad(Difference),
    /// A side gave no file.
    Failed(String),
    /// The farm's own two rounds differ.
    Unstable(Difference),
    /// The reference never shows what the farm does.
    Different(Difference),
}

impl Verdict {
    /// Whether it has to be accepted by name.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Unstable(_) | Self::Different(_))
    }

    /// A heading for its kind.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Repeated => "equal in both rounds",
            Self::Equal => "equal in both rounds and the reference",
            Self::EqualLater(_) => "equal once the reference had more time",
            Self::Moving => "in motion in the reference, too; equal at the end",
            Self::AtLoad(_) => "equal in both rounds; at load the reference differs",
            Self::Failed(_) => "FAILED",
            Self::Unstable(_) => "UNSTABLE: the two rounds differ",
            Self::Different(_) => "DIFFERENT from the reference",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EqualLater(ms) => write!(f, "after {ms} ms more"),
            Self::AtLoad(difference) | Self::Unstable(difference) | Self::Different(difference) => {
                difference.fmt(f)
            }
            Self::Failed(reason) => f.write_str(reason),
            Self::Repeated | Self::Equal | Self::Moving => Ok(()),
        }
    }
}

/// What a job gave, or why it gave nothing.
pub(super) type Outcome = Result<Rendered, String>;

/// The verdict on two rounds and the reference, if that is all it takes. Where more time may explain
/// a difference, the difference is given instead.
pub(super) fn first(
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
        let verdict = |one, other, reference, wait| first([one, other], reference, wait).unwrap();
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
