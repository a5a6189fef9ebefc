//! The report of a comparison.

use std::collections::BTreeMap;

use super::{
    accepted::AcceptedDifferences,
    page::{Milestone, Mode},
    verdict::Verdict,
};

/// Prints every verdict except equality, then the number of verdicts of each kind at each milestone, and
/// returns the number of failures that are not accepted.
pub(super) fn print(accepted: &AcceptedDifferences, verdicts: Vec<(String, Mode, Verdict)>) -> usize {
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut failures = 0;
    for (page, mode, verdict) in verdicts {
        let mut kind = verdict.kind();
        if verdict.is_failure() {
            match accepted.reason(&page, mode) {
                Some(reason) => {
                    println!("{page} {mode}: accepted, {reason}: {verdict}");
                    kind = "accepted, with a reason in bench/corpus/accepted.json";
                }
                None => failures += 1,
            }
        }
        let milestone = match mode.wait {
            Milestone::Load => 0,
            Milestone::Idle => 1,
            Milestone::Second => 2,
        };
        kinds.entry(kind).or_default()[milestone] += 1;
        if kind == verdict.kind() && !matches!(verdict, Verdict::Equal | Verdict::Repeated) {
            println!("{page} {mode}: {kind}: {verdict}");
        }
    }
    println!("\n  load   idle second");
    for (kind, [load, idle, second]) in kinds {
        println!("{load:6} {idle:6} {second:6} {kind}");
    }
    failures
}
