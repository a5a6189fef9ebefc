//! Renders every page many times. The files must be equal, on an idle and on a busy machine.

use std::path::Path;

use anyhow::Result;
use platen_harness::busy_loops::BusyLoops;

use super::{
    Case, Corpus, OUTPUT,
    farm_instance::FarmInstance,
    page::Milestone,
    queue,
    rendered::{self, Rendered},
};

/// Renders every page `times` times in both conditions and returns the number of cases whose files are not
/// all equal and not accepted.
pub(super) async fn run(corpus: &Corpus, times: usize) -> Result<usize> {
    let milestones = &corpus.options.milestones;
    let milestones = if milestones.is_empty() { &[Milestone::Second][..] } else { milestones };
    let cases = corpus.cases(milestones);
    let farm = FarmInstance::start_under_test(corpus).await?;
    eprintln!("{} cases, {times} times each on an idle machine", cases.len());
    let idle = render_all(corpus, &farm, &cases, times).await?;
    eprintln!("the same on a machine with a busy loop per core");
    let busy_loops = BusyLoops::start()?;
    let busy = render_all(corpus, &farm, &cases, times).await?;
    drop(busy_loops);

    let output = Path::new(OUTPUT);
    rendered::create_empty_directory(output)?;
    let (mut failures, mut different) = (0, 0);
    for (((page, mode), idle), busy) in cases.iter().zip(&idle).zip(&busy) {
        let mut found = Vec::new();
        for (condition, repeated) in [("idle", idle), ("busy", busy)] {
            found.extend(repeated.differences.iter().map(|text| format!("{condition}: {text}")));
            for (name, file) in [("first", &repeated.first), ("other", &repeated.other)] {
                if let (Some(file), Some(_)) = (file, &repeated.other) {
                    file.write(output, &format!("{}.{mode}.{condition}.{name}", page.name))?;
                }
            }
        }
        if let (Some(one), Some(other)) = (&idle.first, &busy.first)
            && let Some(difference) = one.difference(other)?
        {
            different += 1;
            found.push(format!("idle and busy: {difference}"));
        }
        if found.is_empty() {
            continue;
        }
        match corpus.accepted.reason(&page.name, *mode) {
            Some(reason) => println!("{} {mode}: accepted, {reason}", page.name),
            None => failures += 1,
        }
        println!("{} {mode}: {} differences, such as {}", page.name, found.len(), found[0]);
    }
    println!("\n{} cases × {times} × 2; {different} differ between an idle and a busy machine", cases.len());
    Ok(failures)
}

/// The files of one case.
#[derive(Default)]
struct Repeated {
    first: Option<Rendered>,
    /// Errors, and differences of other files from the first one.
    differences: Vec<String>,
    /// A file that differs from the first one.
    other: Option<Rendered>,
}

async fn render_all(
    corpus: &Corpus,
    farm: &FarmInstance,
    cases: &[Case],
    times: usize,
) -> Result<Vec<Repeated>> {
    let order = queue::shuffled(cases.len() * times, corpus.seed);
    let work = async |number: usize| corpus.render(farm, &cases[number / times], "acc_corpus", 0).await;
    let outcomes = queue::run(&order, corpus.options.concurrency, work).await;
    outcomes.chunks(times).map(compare_with_first).collect()
}

fn compare_with_first(outcomes: &[Result<Rendered>]) -> Result<Repeated> {
    let mut repeated = Repeated::default();
    for outcome in outcomes {
        match (outcome, &repeated.first) {
            (Err(error), _) => repeated.differences.push(format!("{error:#}")),
            (Ok(file), None) => repeated.first = Some(file.clone()),
            (Ok(file), Some(first)) => {
                if let Some(difference) = first.difference(file)? {
                    repeated.differences.push(difference.to_string());
                    repeated.other.get_or_insert_with(|| file.clone());
                }
            }
        }
    }
    Ok(repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_compared_with_the_first() {
        let document =
            |text: &str| Ok(Rendered::Document { pdf: bytes::Bytes::new(), pages: 1, text: text.to_owned() });
        let repeated = compare_with_first(&[document("a"), document("a"), document("b")]).unwrap();
        assert_eq!(repeated.differences.len(), 1);
        assert!(repeated.other.is_some());
        let repeated = compare_with_first(&[Err(anyhow::anyhow!("no answer")), document("a")]).unwrap();
        assert!(repeated.first.is_some() && repeated.other.is_none());
        assert_eq!(repeated.differences, ["no answer"]);
    }
}
