//! Measures all renderers on one page: checks a file, warms up, then runs the rounds.
//!
//! Invariant: a renderer's memory is not read while its jobs are timed. Its CPU time is read after it has
//! cleaned up.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use platen_harness::site::Site;

use super::{
    Options, file_check,
    generators::{LoadLimits, closed_loop},
    measurement::{Measurement, Round},
    page::Page,
    prepared_request::PreparedRequest,
    report,
    target::Target,
};
use crate::{overload::WARM_UP, statistics::count};

/// Time for a renderer to clean up after a turn.
const CLEANUP_DURATION: Duration = Duration::from_millis(300);
/// Jobs per worker during the warm-up.
const WARM_UP_JOBS: usize = 3;
/// Interval between memory readings during the warm-up.
const MEMORY_INTERVAL: Duration = Duration::from_millis(150);

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
    let concurrency = if page.is_heavy { 1 } else { options.concurrency };
    let mut runs = Vec::new();
    for target in targets {
        let supports = target.kind.supports(page);
        runs.push(if supports { Some(warmed_up(http, target, page, concurrency).await?) } else { None });
    }
    let seconds = if page.is_heavy { options.seconds * HEAVY_TURN } else { options.seconds };
    let limits = LoadLimits { jobs: options.jobs, time: Duration::from_secs_f64(seconds), concurrency };
    for round in 0..rounds(options, page) {
        for turn in 0..runs.len() {
            // Each round begins with a different renderer.
            let index = (turn + round) % runs.len();
            let Some(run) = runs[index].as_mut().filter(|run| run.measurement.file_error.is_none()) else {
                continue;
            };
            let fetches = page.fetches(site);
            let jobs = run.turn(http, limits).await?;
            run.measurement.fetches_per_job = Some(count(page.fetches(site) - fetches) / count(jobs.max(1)));
        }
    }
    for run in runs.iter().flatten() {
        report::print_progress(&run.target.kind.name(), &run.measurement);
    }
    Ok(runs.into_iter().map(|run| run.map(|run| run.measurement)).collect())
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
