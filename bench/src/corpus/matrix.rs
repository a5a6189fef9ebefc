//! Renders every page in every mode, twice with the farm and once with the reference, and compares the files.
//!
//! Invariant: the reference gets more time before a page counts as different. The farm gets more time than
//! the mode says only to find the final state of a page that is still changing.

use std::path::Path;

use anyhow::Result;

use super::{
    Case, Corpus, OUTPUT,
    farm_instance::FarmInstance,
    page::Milestone,
    queue,
    rendered::{self, Difference},
    verdict::{self, Outcome, Verdict},
};

/// Additional waits of the reference, tried in this order.
const EXTRA_WAITS_MS: [u32; 2] = [3_000, 9_000];
/// Number of accounts, so that browser pages are reused and belong to several accounts.
const ACCOUNTS: usize = 3;

/// Prints a report and returns the number of failures.
pub(super) async fn run(corpus: &Corpus) -> Result<usize> {
    let cases = corpus.cases(&corpus.options.milestones);
    eprintln!("{} pages, {} jobs per round", corpus.pages.len(), cases.len());
    let farm = FarmInstance::start_under_test(corpus).await?;
    let first = round(corpus, &farm, &cases, "first round", corpus.seed).await;
    let second = round(corpus, &farm, &cases, "second round", corpus.seed.wrapping_add(1)).await;
    let reference = FarmInstance::start_reference(corpus).await?;
    let third = round(corpus, &reference, &cases, "reference", corpus.seed.wrapping_add(2)).await;
    eprintln!("comparing; where the reference differs, with longer waits");
    let order: Vec<usize> = (0..cases.len()).collect();
    let work = async |number: usize| {
        let case = &cases[number];
        let rounds = [&first[number], &second[number]];
        match verdict::compare_rounds(rounds, &third[number], case.1.wait)? {
            Ok(verdict) => Ok(verdict),
            Err(difference) => {
                let longer = LongerWaits { corpus, farm: &farm, reference: &reference };
                longer.verdict(case, &first[number], &third[number], difference).await
            }
        }
    };
    let verdicts = queue::run(&order, corpus.options.concurrency, work).await;
    let verdicts: Vec<Verdict> = verdicts.into_iter().collect::<Result<_>>()?;
    write_differences(&cases, &verdicts, [&first, &second, &third])?;
    Ok(verdict::report(&corpus.accepted, &cases, &verdicts))
}

/// Renders all cases once in a random order.
async fn round(corpus: &Corpus, farm: &FarmInstance, cases: &[Case], title: &str, seed: u64) -> Vec<Outcome> {
    eprintln!("{title}");
    let order = queue::shuffled(cases.len(), seed);
    let work = async |number: usize| render(corpus, farm, &cases[number], number, 0).await;
    queue::run(&order, corpus.options.concurrency, work).await
}

async fn render(
    corpus: &Corpus,
    farm: &FarmInstance,
    case: &Case,
    number: usize,
    extra_wait_ms: u32,
) -> Outcome {
    let account = format!("acc_corpus{}", number % ACCOUNTS);
    corpus.render(farm, case, &account, extra_wait_ms).await.map_err(|error| format!("{error:#}"))
}

/// Repeats jobs with longer waits.
struct LongerWaits<'a> {
    corpus: &'a Corpus,
    farm: &'a FarmInstance,
    reference: &'a FarmInstance,
}

impl LongerWaits<'_> {
    /// The verdict on a page that differs from the reference, after the reference had more time.
    async fn verdict(
        &self,
        case: &Case,
        farm: &Outcome,
        reference: &Outcome,
        difference: Difference,
    ) -> Result<Verdict> {
        let (Ok(farm), Ok(reference)) = (farm, reference) else { return Ok(Verdict::Different(difference)) };
        let mut last = difference;
        for extra_wait_ms in EXTRA_WAITS_MS {
            let later_reference = match render(self.corpus, self.reference, case, 0, extra_wait_ms).await {
                Ok(file) => file,
                Err(reason) => return Ok(Verdict::Failed(format!("reference: {reason}"))),
            };
            match farm.difference(&later_reference)? {
                None => return Ok(Verdict::EqualLater(extra_wait_ms)),
                Some(difference) => last = difference,
            }
            // During an animation two browsers show different states; their final states are equal.
            if case.1.wait == Milestone::Idle && reference.difference(&later_reference)?.is_some() {
                let later_farm = match render(self.corpus, self.farm, case, 0, extra_wait_ms).await {
                    Ok(file) => file,
                    Err(reason) => return Ok(Verdict::Failed(format!("farm: {reason}"))),
                };
                if later_farm.difference(&later_reference)?.is_none() {
                    return Ok(Verdict::Changing);
                }
            }
        }
        Ok(Verdict::Different(last))
    }
}

fn write_differences(cases: &[Case], verdicts: &[Verdict], rounds: [&Vec<Outcome>; 3]) -> Result<()> {
    let output = Path::new(OUTPUT);
    rendered::create_empty_directory(output)?;
    for (number, ((page, mode), verdict)) in cases.iter().zip(verdicts).enumerate() {
        if matches!(verdict, Verdict::Equal | Verdict::EqualLater(_)) {
            continue;
        }
        for (outcomes, round) in rounds.iter().zip(["first", "second", "reference"]) {
            if let Some(Ok(file)) = outcomes.get(number) {
                file.write(output, &format!("{}.{mode}.{round}", page.name))?;
            }
        }
    }
    Ok(())
}
