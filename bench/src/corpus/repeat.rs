//! The same job again and again: its files must be equal, on an idle machine and on a busy one.

use anyhow::Result;

use super::{
    Corpus,
    busy::BusyLoops,
    farm::Farm,
    page::{Milestone, Mode, Page},
    queue,
    rendered::{self, Rendered},
    say,
};

/// Renders every page `times` times in both conditions and gives the number of jobs that are not
/// accepted and not always equal.
pub(super) async fn run(corpus: &Corpus, times: usize) -> Result<usize> {
    let milestones = &corpus.options.milestones;
    let milestones = if milestones.is_empty() { &[Milestone::Second][..] } else { milestones };
    let cases = corpus.cases(milestones);
    let farm = Farm::subject(corpus).await?;
    say(&format!("{} jobs, {times} times each on an idle machine", cases.len()));
    let idle = condition(corpus, &farm, &cases, times).await?;
    say("the same with a busy loop on each core");
    let loops = BusyLoops::start()?;
    let busy = condition(corpus, &farm, &cases, times).await?;
    drop(loops);

    let output = &corpus.options.output;
    rendered::make_room(output)?;
    let (mut failures, mut between) = (0, 0);
    for (((page, mode), idle), busy) in cases.iter().zip(&idle).zip(&busy) {
        let mut found = Vec::new();
        for (condition, repeated) in [("idle", idle), ("busy", busy)] {
            found.extend(repeated.unequal.iter().map(|text| format!("{condition}: {text}")));
            for (side, file) in [("first", &repeated.first), ("other", &repeated.other)] {
                if let (Some(file), Some(_)) = (file, &repeated.other) {
                    file.write(output, &format!("{}.{mode}.{condition}.{side}", page.name))?;
                }
            }
        }
        if let (Some(one), Some(other)) = (&idle.first, &busy.first)
            && let Some(difference) = one.difference(other)?
        {
            between += 1;
            found.push(format!("between the two: {difference}"));
        }
        if found.is_empty() {
            continue;
        }
        match corpus.accepted.reason(&page.name, *mode) {
            Some(reason) => println!("{} {mode}: accepted, {reason}", page.name),
            None => failures += 1,
        }
        println!("{} {mode}: {} unequal, such as {}", page.name, found.len(), found[0]);
    }
    println!("\n{} jobs × {times} × 2; {between} differ between an idle and a busy machine", cases.len());
    Ok(failures)
}

/// What the same job gave again and again.
#[derive(Default)]
struct Repeated {
    first: Option<Rendered>,
    /// In what others differ from the first.
    unequal: Vec<String>,
    /// One of those.
    other: Option<Rendered>,
}

async fn condition(
    corpus: &Corpus,
    farm: &Farm,
    cases: &[(Page, Mode)],
    times: usize,
) -> Result<Vec<Repeated>> {
    let order = queue::shuffled(cases.len() * times, corpus.seed);
    let work = async |number: usize| -> Result<Rendered> {
        let (page, mode) = &cases[number / times];
        let job = page.job(*mode, &corpus.server.origin(), "acc_corpus", 0)?;
        let (file, format) = (farm.render(&job).await?, mode.format);
        tokio::task::spawn_blocking(move || Rendered::read(file, format)).await?
    };
    let outcomes = queue::all(&order, corpus.options.concurrency, work).await;
    outcomes.chunks(times).map(same).collect()
}

fn same(outcomes: &[Result<Rendered>]) -> Result<Repeated> {
    let mut repeated = Repeated::default();
    for outcome in outcomes {
        match (outcome, &repeated.first) {
            (Err(error), _) => repeated.unequal.push(format!("{error:#}")),
            (Ok(file), None) => repeated.first = Some(file.clone()),
            (Ok(file), Some(first)) => {
                if let Some(difference) = first.difference(file)? {
                    repeated.unequal.push(difference.to_string());
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
            |text: &str| Ok(Rendered::Document { pdf: bytes::Bytes::new(), text: text.to_owned() });
        let repeated = same(&[document("a"), document("a"), document("b")]).unwrap();
        assert_eq!(repeated.unequal.len(), 1);
        assert!(repeated.other.is_some());
        let repeated = same(&[Err(anyhow::anyhow!("no answer")), document("a")]).unwrap();
        assert!(repeated.first.is_some() && repeated.other.is_none());
        assert_eq!(repeated.unequal, ["no answer"]);
    }
}
