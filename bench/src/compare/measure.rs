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
    page::{self, Page},
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

/// Measurements in the order of `targets`; `None` where a renderer does not support the page.
pub(super) async fn all(
    options: &Options,
    http: &reqwest::Client,
    site: &Site,
    targets: &[Target],
    page: &Page,
) -> Result<Vec<Option<Measurement>>> {
    let mut runs = Vec::new();
    for target in targets {
        let supports = target.kind.supports(page);
        runs.push(if supports { Some(TargetRun::start(options, http, target, page).await?) } else { None });
    }
    for round in 0..rounds(options, page) {
        for turn in 0..runs.len() {
            // Each round begins with a different renderer.
            let index = (turn + round) % runs.len();
            if let Some(run) = runs[index].as_mut().filter(|run| run.measurement.file_error.is_none()) {
                run.turn(options, http, site).await?;
            }
        }
    }
    for run in runs.iter().flatten() {
        report::print_progress(run.target.kind, &run.measurement);
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

struct TargetRun<'a> {
    target: &'a Target,
    request: Arc<PreparedRequest>,
    measurement: Measurement,
}

impl<'a> TargetRun<'a> {
    /// Checks one file, then warms the renderer up on the page.
    async fn start(
        options: &Options,
        http: &reqwest::Client,
        target: &'a Target,
        page: &Page,
    ) -> Result<Self> {
        let request = Arc::new(PreparedRequest::new(target, page)?);
        let mut run = Self { target, request, measurement: Measurement::default() };
        let file = run.request.send(http).await;
        match file.and_then(|file| Ok((file_check::content(&file, page)?, file.len()))) {
            Ok((pages, bytes)) => {
                (run.measurement.file_pages, run.measurement.file_bytes) = (pages, bytes);
                run.request.expect_bytes(bytes);
            }
            Err(error) => {
                run.measurement.file_error = Some(format!("{error:#}"));
                return Ok(run);
            }
        }
        let request = Arc::new(PreparedRequest::new(target, &page.without_wait())?);
        let concurrency = options.concurrency;
        let limits = LoadLimits { jobs: concurrency * WARM_UP_JOBS, time: WARM_UP, concurrency };
        let mut jobs = std::pin::pin!(closed_loop(http, &request, limits));
        loop {
            tokio::select! {
                _ = &mut jobs => return Ok(run),
                () = tokio::time::sleep(MEMORY_INTERVAL) => run.read_memory(),
            }
        }
    }

    async fn turn(&mut self, options: &Options, http: &reqwest::Client, site: &Site) -> Result<()> {
        let limits = LoadLimits {
            jobs: options.jobs,
            time: Duration::from_secs_f64(options.seconds),
            concurrency: options.concurrency,
        };
        let (cpu_time, fetches) = (self.target.processes.cpu_time()?, page::gallery_fetches(site));
        let result = closed_loop(http, &self.request, limits).await;
        tokio::time::sleep(CLEANUP_DURATION).await;
        let cpu_time = self.target.processes.cpu_time()?.saturating_sub(cpu_time);
        let fetches = page::gallery_fetches(site) - fetches;
        if fetches > 0 {
            self.measurement.fetches_per_job = Some(count(fetches) / count(result.latencies.len().max(1)));
        }
        self.read_memory();
        self.measurement.rounds.push(Round { result, cpu_time });
        Ok(())
    }

    fn read_memory(&mut self) {
        let peak = &mut self.measurement.peak_memory_bytes;
        *peak = (*peak).max(self.target.processes.memory_bytes());
    }
}
