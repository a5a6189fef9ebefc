//! The report of a comparison.

use std::collections::BTreeMap;

use super::{Case, accepted::AcceptedDifferences, verdict::Verdict};

/// Prints every verdict except equality, then the number of verdicts of each kind at each milestone, and
/// returns the number of failures that are not accepted.
pub(super) fn print(accepted: &AcceptedDifferences, cases: &[Case], verdicts: &[Verdict]) -> usize {
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
