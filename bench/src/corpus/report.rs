//! What is printed at the end of a comparison.

use std::collections::BTreeMap;

use super::{accepted::Accepted, page::Mode, verdict::Verdict};

/// Prints every verdict that is not plain equality, then how many there are of each kind, and gives the
/// number of failures that are not accepted.
pub(super) fn print(accepted: &Accepted, verdicts: Vec<(String, Mode, Verdict)>) -> usize {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = 0;
    for (page, mode, verdict) in verdicts {
        let mut kind = verdict.kind();
        if verdict.is_failure() {
            match accepted.reason(&page, mode) {
                Some(reason) => {
                    println!("{page} {mode}: accepted, {reason}: {verdict}");
                    kind = "accepted by name";
                }
                None => failures += 1,
            }
        }
        *kinds.entry(kind).or_default() += 1;
        if kind == verdict.kind() && !matches!(verdict, Verdict::Equal | Verdict::Repeated) {
            println!("{page} {mode}: {kind}: {verdict}");
        }
    }
    println!();
    for (kind, count) in kinds {
        println!("{count:6} {kind}");
    }
    failures
}
