//! The comparison: every page in every mode, twice by the farm and once by the reference.
//!
//! Invariant: the reference is given more time before a page counts as different, and the farm is never
//! given more than the mode says, save to see where a page that moves comes to rest.

use anyhow::Result;

use super::{
    Corpus,
    farm::Farm,
    page::{Milestone, Mode, Page},
    queue,
    rendered::{self, Difference, Rendered},
    report, say,
    verdict::{self, Outcome, Verdict},
};

/// How much more time the reference gets, one after the other.
const PATIENCE_MS: [u32; 2] = [3_000, 9_000];
/// Accounts that the jobs come from, so that pages are used again and by several.
const ACCOUNTS: usize = 3;

/// Compares, prints a report and gives the number of failures.
pub(super) async fn run(corpus: &Corpus) -> Result<usize> {
    let cases = corpus.cases(&corpus.options.milestones);
    say(&format!("{} pages, {} jobs a round", corpus.pages.len(), cases.len()));
    let subject = Farm::subject(corpus).await?;
    let first = round(corpus, &subject, &cases, "first round", corpus.seed).await;
    let second = round(corpus, &subject, &cases, "second round", corpus.seed.wrapping_add(1)).await;
    let reference = if corpus.options.no_reference { None } else { Some(Farm::reference(corpus).await?) };
    let mut real = Vec::new();
    if let Some(reference) = &reference {
        let order = corpus.seed.wrapping_add(2);
        real = round(corpus, reference, &cases, "reference", order).await;
    }
    let mut verdicts = Vec::new();
    let mut open = Vec::new();
    for (number, (_, mode)) in cases.iter().enumerate() {
        match verdict::first([&first[number], &second[number]], real.get(number), mode.wait)? {
            Ok(verdict) => verdicts.push((number, verdict)),
            Err(difference) => open.push((number, difference)),
        }
    }
    if let Some(reference) = &reference {
        say(&format!("more time for {} of them", open.len()));
        let order: Vec<usize> = (0..open.len()).collect();
        let work = async |place: usize| {
            let (number, difference) = &open[place];
            let sides = Sides { corpus, subject: &subject, reference };
            let case = &cases[*number];
            sides.later(case, &first[*number], &real[*number], difference.clone()).await
        };
        let later = queue::all(&order, corpus.options.concurrency, work).await;
        for ((number, _), verdict) in open.iter().zip(later) {
            verdicts.push((*number, verdict?));
        }
    }
    verdicts.sort_by_key(|(number, _)| *number);
    let all = [&first, &second, &real];
    write_differences(corpus, &cases, &verdicts, &all)?;
    let lines = verdicts.into_iter().map(|(number, verdict)| {
        let (page, mode) = &cases[number];
        (page.name.clone(), *mode, verdict)
    });
    Ok(report::print(&corpus.accepted, lines.collect()))
}

/// One round in its own random order.
async fn round(corpus: &Corpus, farm: &Farm, cases: &[(Page, Mode)], title: &str, seed: u64) -> Vec<Outcome> {
    say(title);
    let order = queue::shuffled(cases.len(), seed);
    let work = async |number: usize| render(corpus, farm, &cases[number], number, 0).await;
    queue::all(&order, corpus.options.concurrency, work).await
}

/// One job; its file is read where it does not hold up others.
async fn render(
    corpus: &Corpus,
    farm: &Farm,
    (page, mode): &(Page, Mode),
    number: usize,
    more_ms: u32,
) -> Outcome {
    let format = mode.format;
    let render = async {
        let account = format!("acc_corpus{}", number % ACCOUNTS);
        let job = page.job(*mode, &corpus.server.origin(), &account, more_ms)?;
        let file = farm.render(&job).await?;
        tokio::task::spawn_blocking(move || Rendered::read(file, format)).await?
    };
    render.await.map_err(|error: anyhow::Error| format!("{error:#}"))
}

struct Sides<'a> {
    corpus: &'a Corpus,
    subject: &'a Farm,
    reference: &'a Farm,
}

impl Sides<'_> {
    /// The verdict on a page that looked otherwise in the reference, which is given more time.
    async fn later(
        &self,
        case: &(Page, Mode),
        ours: &Outcome,
        real: &Outcome,
        difference: Difference,
    ) -> Result<Verdict> {
        let (Ok(ours), Ok(real)) = (ours, real) else { return Ok(Verdict::Different(difference)) };
        let mut last = difference;
        for more_ms in PATIENCE_MS {
            let patient = match render(self.corpus, self.reference, case, 0, more_ms).await {
                Ok(patient) => patient,
                Err(reason) => return Ok(Verdict::Failed(format!("reference: {reason}"))),
            };
            match ours.difference(&patient)? {
                None => return Ok(Verdict::EqualLater(more_ms)),
                Some(difference) => last = difference,
            }
            // Halfway through an animation no two browsers show the same; where it ends they do.
            if case.1.wait == Milestone::Idle && real.difference(&patient)?.is_some() {
                let rest = match render(self.corpus, self.subject, case, 0, more_ms).await {
                    Ok(rest) => rest,
                    Err(reason) => return Ok(Verdict::Failed(format!("farm: {reason}"))),
                };
                if rest.difference(&patient)?.is_none() {
                    return Ok(Verdict::Moving);
                }
            }
        }
        Ok(Verdict::Different(last))
    }
}

fn write_differences(
    corpus: &Corpus,
    cases: &[(Page, Mode)],
    verdicts: &[(usize, Verdict)],
    all: &[&Vec<Outcome>; 3],
) -> Result<()> {
    let output = &corpus.options.output;
    rendered::make_room(output)?;
    for (number, verdict) in verdicts {
        let equal = matches!(verdict, Verdict::Repeated | Verdict::Equal | Verdict::EqualLater(_));
        if equal && !corpus.options.keep {
            continue;
        }
        let (page, mode) = &cases[*number];
        for (outcomes, side) in all.iter().zip(["first", "second", "reference"]) {
            if let Some(Ok(file)) = outcomes.get(*number) {
                file.write(output, &format!("{}.{mode}.{side}", page.name))?;
            }
        }
    }
    Ok(())
}
