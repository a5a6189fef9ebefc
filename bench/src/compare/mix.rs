//! Jobs of many accounts, of which few come often and most come seldom, on several pages.
//!
//! Invariant: every renderer gets the same jobs in the same order. All but the farm know no accounts.

use std::{sync::Arc, thread, time::Duration};

use anyhow::Result;
use platen_harness::metrics;
use rand::{
    SeedableRng as _,
    distr::{Distribution as _, weighted::WeightedIndex},
    rngs::StdRng,
};

use crate::farm;

use super::{
    MIX_ACCOUNTS, Mixed, Options,
    generators::LoadLimits,
    measure::{Measurement, TargetRun, first_file, print_progress, turn_order},
    page::Page,
    prepared_request::PreparedRequest,
    target::{Environment, Kind, Launch, Target},
};

/// The renderers, the farm with different memory for warm pages, in MiB.
const RENDERERS: [(Kind, Option<u32>); 5] = [
    (Kind::Raw, None),
    (Kind::Farm, Some(2_048)),
    (Kind::Farm, Some(8_192)),
    (Kind::Cluster, None),
    (Kind::Browserless, None),
];
/// The same as the farm's default.
const JOBS_PER_CORE: usize = 2;
/// Jobs of a turn.
pub(super) const TURN_JOBS: usize = 400;
/// Turns in the time of a warm-up: a farm that has just started has no page for any account.
pub(super) const WARM_UP_TURNS: usize = 5;
/// The same for renderers that know no accounts.
const WARM_UP_TURNS_WITHOUT_ACCOUNTS: usize = 1;
/// The time after which a turn starts no further jobs, so that a slow renderer has fewer.
const MAX_TURN: Duration = Duration::from_secs(40);
/// Where the farm's pages for jobs come from.
const SOURCES: [&str; 3] = ["warm", "spare", "opened"];

/// Measures the renderers on pages with their shares.
pub(super) async fn run(
    options: &Options,
    environment: &Environment,
    http: &reqwest::Client,
    pages: &[(Page, u32)],
) -> Result<Vec<Mixed>> {
    let concurrency = JOBS_PER_CORE * thread::available_parallelism()?.get();
    let turns = WARM_UP_TURNS + options.rounds;
    let jobs = sequence(pages.iter().map(|(_, share)| *share), turns * TURN_JOBS)?;
    let (warm_up, rounds) = jobs.split_at(WARM_UP_TURNS * TURN_JOBS);
    let limits = |turns: usize| LoadLimits {
        jobs: turns * TURN_JOBS,
        time: MAX_TURN * u32::try_from(turns).unwrap_or(u32::MAX),
        concurrency,
    };

    let mut targets = Vec::new();
    for (kind, warm_memory_mib) in RENDERERS {
        let memory = warm_memory_mib.map(|mebibytes| format!("-{mebibytes}")).unwrap_or_default();
        let name = format!("mix-{}{memory}", kind.name());
        let launch = Launch { kind, name, concurrency, warm_memory_mib };
        match Target::launch(&launch, environment).await {
            Ok(target) => targets.push((target, launch)),
            Err(error) => eprintln!("  {} is unavailable: {error:#}", launch.name),
        }
    }
    let mut runs = Vec::new();
    for (target, launch) in &targets {
        let mut measurement = Measurement::default();
        let mut bytes = Vec::new();
        for (page, _) in pages {
            match first_file(http, &PreparedRequest::new(target, page)?, page).await {
                Ok(file) => bytes.push(file.1),
                Err(error) => measurement.file_error = Some(format!("{}: {error:#}", page.name)),
            }
        }
        let mut run = TargetRun { target, requests: Arc::new([]), measurement };
        let is_wrong = run.measurement.file_error.is_some();
        if !is_wrong {
            let turns = match launch.kind {
                Kind::Farm => WARM_UP_TURNS,
                _ => WARM_UP_TURNS_WITHOUT_ACCOUNTS,
            };
            let requests = requests(target, pages, &bytes, &warm_up[..turns * TURN_JOBS])?;
            run.warm_up(http, &requests, limits(turns)).await;
        }
        let sources = sources(http, target).await?;
        runs.push((run, bytes, sources, launch));
    }
    for (round, jobs) in rounds.chunks(TURN_JOBS).enumerate() {
        for index in turn_order(round, runs.len()) {
            let (run, bytes, ..) = &mut runs[index];
            if run.measurement.file_error.is_none() {
                run.requests = requests(run.target, pages, bytes, jobs)?;
                run.turn(http, limits(1)).await?;
            }
        }
    }
    let mut all = Vec::new();
    for (run, _, before, launch) in runs {
        let after = sources(http, run.target).await?;
        let pages = after.zip(before).map(|(after, before)| std::array::from_fn(|n| after[n] - before[n]));
        let Launch { kind, warm_memory_mib, .. } = *launch;
        let mixed = Mixed { kind, warm_memory_mib, measurement: run.measurement, pages };
        print_progress(&launch.name, &mixed.measurement);
        all.push(mixed);
    }
    Ok(all)
}

/// A job: the rank of its account, from 0, and the index of its page.
type Job = (usize, usize);

/// The first jobs of the mix in which pages have these shares.
fn sequence(shares: impl Iterator<Item = u32>, jobs: usize) -> Result<Vec<Job>> {
    let accounts = WeightedIndex::new((1..=MIX_ACCOUNTS).map(|rank| 1.0 / f64::from(rank)))?;
    let pages = WeightedIndex::new(shares)?;
    let mut random = StdRng::seed_from_u64(1);
    Ok((0..jobs).map(|_| (accounts.sample(&mut random), pages.sample(&mut random))).collect())
}

/// The requests of jobs, whose files have these sizes by page.
fn requests(
    target: &Target,
    pages: &[(Page, u32)],
    bytes: &[usize],
    jobs: &[Job],
) -> Result<Arc<[PreparedRequest]>> {
    let request = |&(account, page): &Job| {
        let request = PreparedRequest::of_account(target, &pages[page].0, &format!("acc_mix{account}"))?;
        request.expect_bytes(bytes[page]);
        Ok(request)
    };
    jobs.iter().map(request).collect()
}

/// The pages that a farm has given to jobs so far.
async fn sources(http: &reqwest::Client, target: &Target) -> Result<Option<[usize; 3]>> {
    if target.kind != Kind::Farm {
        return Ok(None);
    }
    let mut pages = [0; 3];
    for (pages, source) in pages.iter_mut().zip(SOURCES) {
        let name = format!("platen_farm_pages_total{{source=\"{source}\"}}");
        let url = format!("http://{}/metrics", target.address);
        *pages = usize::try_from(metrics::read(http, &url, farm::TOKEN, &name).await?.unwrap_or_default())?;
    }
    Ok(Some(pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_account_has_the_share_that_zipf_gives_it() {
        let jobs = sequence([60, 40].into_iter(), 10_000).unwrap();
        assert_eq!(jobs, sequence([60, 40].into_iter(), 10_000).unwrap());
        let share = |is: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| is(job)).count();
        // 1 / (1 + 1/2 + … + 1/1000) is 13.4 %.
        assert!((1_200..1_500).contains(&share(&|(account, _)| *account == 0)));
        assert!((5_800..6_200).contains(&share(&|(_, page)| *page == 0)));
    }
}
