//! Measures all renderers on one page: checks a file, warms up, then runs the rounds.
//!
//! Invariant: a renderer's memory is not read while its jobs are timed. Its CPU time is read after it has
//! cleaned up. Rates and CPU times are medians over rounds, latencies are of all rounds together. A failed job does not
//! count as a job, but its CPU time is included.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use platen_harness::site::Site;

use super::{
    CONCURRENCY, Options, file_check,
    generators::{LoadLimits, closed_loop},
    page::Page,
    prepared_request::PreparedRequest,
    target::Target,
};
use crate::{
    server::WARM_UP,
    statistics::{LoadResult, count, mebibytes, median, milliseconds, number, percentile_ms},
};

/// Time for a renderer to clean up after a turn.
const CLEANUP_DURATION: Duration = Duration::from_millis(300);
/// Jobs per worker during the warm-up.
const WARM_UP_JOBS: usize = 3;
/// Interval between memory readings during the warm-up.
const MEMORY_INTERVAL: Duration = Duration::from_millis(150);

/// Maximum number of jobs of a turn.
const TURN_JOBS: usize = 60;
/// The time after which a turn starts no further jobs, in seconds.
const TURN_SECONDS: f64 = 1.5;
/// How much longer the turns on heavy pages are, which take seconds for each job.
const HEAVY_TURN: f64 = 4.0;

/// Measurements in the order of `targets`; `None` where a renderer does not support the page.
pub(super) async fn all(
    options: &Options,
    http: &reqwest::Client,
    site: &Site,
    targets: &[Target],
    page: &Page,
) -> Result<Vec<Option<Measurement>>> {
    let concurrency = if page.is_heavy { 1 } else { CONCURRENCY };
    let mut runs = Vec::new();
    for target in targets {
        let supports = target.kind.supports(page);
        runs.push(if supports { Some(warmed_up(http, target, page, concurrency).await?) } else { None });
    }
    let seconds = if page.is_heavy { TURN_SECONDS * HEAVY_TURN } else { TURN_SECONDS };
    let limits = LoadLimits { jobs: TURN_JOBS, time: Duration::from_secs_f64(seconds), concurrency };
    for round in 0..rounds(options, page) {
        for index in turn_order(round, runs.len()) {
            let Some(run) = runs[index].as_mut().filter(|run| run.measurement.file_error.is_none()) else {
                continue;
            };
            let fetches = page.fetches(site);
            let jobs = run.turn(http, limits).await?;
            run.measurement.fetches_per_job = Some(count(page.fetches(site) - fetches) / count(jobs.max(1)));
        }
    }
    for run in runs.iter().flatten() {
        print_progress(&run.target.kind.name(), &run.measurement);
    }
    Ok(runs.into_iter().map(|run| run.map(|run| run.measurement)).collect())
}

/// The order of the renderers in a round. Each round begins with a different one, and every second is reversed, because a
/// turn depends a little on the one before it.
pub(super) fn turn_order(round: usize, renderers: usize) -> impl Iterator<Item = usize> {
    (0..renderers).map(move |turn| {
        let place = if round.is_multiple_of(2) { turn } else { renderers - 1 - turn };
        (place + round) % renderers
    })
}

fn rounds(options: &Options, page: &Page) -> usize {
    match page.wait_ms {
        // A renderer that waits in real time needs ten seconds per job: one round is enough.
        10_000.. => 1,
        _ if page.name.starts_with("invoice") => options.rounds,
        _ => options.rounds.saturating_sub(1).max(1),
    }
}

/// A renderer whose file was checked, and which is warm on the page.
async fn warmed_up<'a>(
    http: &reqwest::Client,
    target: &'a Target,
    page: &Page,
    concurrency: usize,
) -> Result<TargetRun<'a>> {
    let request = PreparedRequest::new(target, page)?;
    let mut measurement = Measurement::default();
    match first_file(http, &request, page).await {
        Ok((pages, bytes)) => {
            (measurement.file_pages, measurement.file_bytes) = (pages, bytes);
            request.expect_bytes(bytes);
        }
        Err(error) => measurement.file_error = Some(format!("{error:#}")),
    }
    let is_wrong = measurement.file_error.is_some();
    let mut run = TargetRun { target, requests: Arc::new([request]), measurement };
    if !is_wrong {
        let request = PreparedRequest::new(target, &page.without_wait())?;
        let limits = LoadLimits { jobs: concurrency * WARM_UP_JOBS, time: WARM_UP, concurrency };
        run.warm_up(http, &(Arc::new([request]) as Arc<[_]>), limits).await;
    }
    Ok(run)
}

/// Renders and decodes a file, and returns the number of its pages and its size.
pub(super) async fn first_file(
    http: &reqwest::Client,
    request: &PreparedRequest,
    page: &Page,
) -> Result<(usize, usize)> {
    let file = request.send(http).await?;
    Ok((file_check::content(&file, page)?, file.len()))
}

/// A renderer, the requests of its next turn, and what its turns so far have shown.
pub(super) struct TargetRun<'a> {
    pub(super) target: &'a Target,
    pub(super) requests: Arc<[PreparedRequest]>,
    pub(super) measurement: Measurement,
}

impl TargetRun<'_> {
    /// Sends requests that are not measured, and reads the memory meanwhile.
    pub(super) async fn warm_up(
        &mut self,
        http: &reqwest::Client,
        requests: &Arc<[PreparedRequest]>,
        limits: LoadLimits,
    ) {
        let mut jobs = std::pin::pin!(closed_loop(http, requests, limits));
        loop {
            tokio::select! {
                _ = &mut jobs => return,
                () = tokio::time::sleep(MEMORY_INTERVAL) => self.read_memory(),
            }
        }
    }

    /// Measures one round and returns the number of its files.
    pub(super) async fn turn(&mut self, http: &reqwest::Client, limits: LoadLimits) -> Result<usize> {
        let cpu_time = self.target.processes.cpu_time()?;
        let result = closed_loop(http, &self.requests, limits).await;
        tokio::time::sleep(CLEANUP_DURATION).await;
        let cpu_time = self.target.processes.cpu_time()?.saturating_sub(cpu_time);
        self.read_memory();
        let jobs = result.latencies.len();
        self.measurement.rounds.push(Round { result, cpu_time });
        Ok(jobs)
    }

    fn read_memory(&mut self) {
        let peak = &mut self.measurement.peak_memory_bytes;
        *peak = (*peak).max(self.target.processes.memory_bytes());
    }
}

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) result: LoadResult,
    /// CPU time of the whole process tree, including cleanup.
    pub(crate) cpu_time: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Measurement {
    pub(crate) rounds: Vec<Round>,
    /// Size of the file that was decoded.
    pub(crate) file_bytes: usize,
    /// Number of its pages.
    pub(crate) file_pages: usize,
    pub(crate) peak_memory_bytes: u64,
    /// Why the file that was decoded is wrong.
    pub(crate) file_error: Option<String>,
    /// Images and fonts fetched per job, on the page that has them.
    pub(crate) fetches_per_job: Option<f64>,
}

impl Measurement {
    /// Number of successful jobs.
    pub(crate) fn jobs(&self) -> usize {
        self.rounds.iter().map(|round| round.result.latencies.len()).sum()
    }

    /// Number of failed jobs.
    pub(crate) fn errors(&self) -> usize {
        self.rounds.iter().map(|round| round.result.errors.len()).sum()
    }

    pub(crate) fn first_error(&self) -> Option<&str> {
        let of_rounds = || self.rounds.iter().find_map(|round| round.result.errors.first());
        self.file_error.as_ref().or_else(of_rounds).map(String::as_str)
    }

    /// Successful jobs per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        median(self.rounds.iter().map(|round| round.result.rate()).collect())
    }

    /// CPU milliseconds per successful job.
    pub(crate) fn cpu_ms(&self) -> Option<f64> {
        let successful = self.rounds.iter().filter(|round| !round.result.latencies.is_empty());
        median(
            successful
                .map(|round| milliseconds(round.cpu_time) / count(round.result.latencies.len()))
                .collect(),
        )
    }

    pub(crate) fn latency_ms(&self, percent: usize) -> Option<f64> {
        percentile_ms(self.rounds.iter().flat_map(|round| &round.result.latencies), percent)
    }
}

/// Prints one line per renderer and page during the run.
pub(super) fn print_progress(name: &str, measurement: &Measurement) {
    let error = measurement.first_error();
    eprintln!(
        "  {:<20} {:>7} jobs/s  p50 {:>6} ms  CPU {:>8} ms  PSS {:>5.0} MiB  {} bytes  {} jobs  {}",
        name,
        number(measurement.rate(), 1),
        number(measurement.latency_ms(50), 0),
        number(measurement.cpu_ms(), 1),
        mebibytes(measurement.peak_memory_bytes),
        measurement.file_bytes,
        measurement.jobs(),
        error.map(|error| format!("{} errors: {error}", measurement.errors())).unwrap_or_default(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_failed_jobs_is_included() {
        let result = LoadResult {
            elapsed: Duration::from_secs(1),
            latencies: vec![Duration::from_millis(5); 2],
            errors: vec!["broken".to_owned()],
        };
        let rounds = vec![Round { result, cpu_time: Duration::from_millis(30) }];
        let measurement = Measurement { rounds, ..Measurement::default() };
        assert_eq!(measurement.cpu_ms(), Some(15.0));
        assert_eq!(measurement.rate(), Some(2.0));
        let counts = (measurement.jobs(), measurement.errors(), measurement.first_error());
        assert_eq!(counts, (2, 1, Some("broken")));
    }
}
