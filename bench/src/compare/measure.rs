//! One page on all sides: a close look at a file, the same warm-up, then round by round.
//!
//! Invariant: nothing is read of a side's memory while its jobs are timed; its CPU time is read when
//! it has cleaned up behind them.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use platen_tests::site::Site;

use super::{
    Options,
    call::Call,
    check,
    drive::{self, Limits, closed},
    figures::{Figures, Round, count},
    page::{self, Page},
    report,
    target::Target,
};

/// Time for a side to clean up behind a turn.
const CLEANING: Duration = Duration::from_millis(300);
/// Bounds of a warm-up: jobs for each worker, and time for those that are slow.
const WARM_UP_JOBS: usize = 3;
const WARM_UP_TIME: Duration = Duration::from_secs(2);
/// Between two readings of memory during a warm-up.
const MEMORY_INTERVAL: Duration = Duration::from_millis(150);

/// Figures of every side, in their order; nothing for one that cannot render the page.
pub(super) async fn all(
    options: &Options,
    http: &reqwest::Client,
    site: &Site,
    targets: &[Target],
    page: &Page,
) -> Result<Vec<Option<Figures>>> {
    let mut sides = Vec::new();
    for target in targets {
        let can = target.kind.can(page);
        sides.push(if can { Some(Side::warm(options, http, target, page).await?) } else { None });
    }
    for round in 0..rounds(options, page) {
        for turn in 0..sides.len() {
            // Another side begins each round.
            let place = (turn + round) % sides.len();
            if let Some(side) = sides[place].as_mut().filter(|side| side.figures.wrong.is_none()) {
                side.turn(options, http, site).await?;
            }
        }
    }
    for side in sides.iter().flatten() {
        report::progress(side.target.kind, &side.figures);
    }
    Ok(sides.into_iter().map(|side| side.map(|side| side.figures)).collect())
}

fn rounds(options: &Options, page: &Page) -> usize {
    match page.wait_ms {
        // In real time these are ten seconds a job: one round is enough to see that.
        10_000.. => 1,
        _ if page.name.starts_with("invoice") => options.rounds,
        _ => options.rounds.saturating_sub(1).max(1),
    }
}

/// One side and what it has shown so far.
struct Side<'a> {
    target: &'a Target,
    call: Arc<Call>,
    figures: Figures,
}

impl<'a> Side<'a> {
    /// Looks closely at one file, then warms the side up on the page.
    async fn warm(
        options: &Options,
        http: &reqwest::Client,
        target: &'a Target,
        page: &Page,
    ) -> Result<Self> {
        let call = Arc::new(Call::new(&target.speech, target.address, page)?);
        let mut side = Self { target, call, figures: Figures::default() };
        let file = drive::once(http, &side.call).await;
        match file.and_then(|file| Ok((check::closely(&file, page)?, file.len()))) {
            Ok((pages, bytes)) => {
                (side.figures.pages, side.figures.bytes) = (pages, bytes);
                side.call.expect_size(bytes);
            }
            Err(error) => {
                side.figures.wrong = Some(format!("{error:#}"));
                return Ok(side);
            }
        }
        let call = Arc::new(Call::new(&target.speech, target.address, &page.without_wait())?);
        let concurrency = options.concurrency;
        let limits = Limits { jobs: concurrency * WARM_UP_JOBS, time: WARM_UP_TIME, concurrency };
        let mut jobs = std::pin::pin!(closed(http, &call, limits));
        loop {
            tokio::select! {
                _ = &mut jobs => return Ok(side),
                () = tokio::time::sleep(MEMORY_INTERVAL) => side.read_memory(),
            }
        }
    }

    /// One turn of this side.
    async fn turn(&mut self, options: &Options, http: &reqwest::Client, site: &Site) -> Result<()> {
        let limits = Limits {
            jobs: options.jobs,
            time: Duration::from_secs_f64(options.seconds),
            concurrency: options.concurrency,
        };
        let (cpu, fetches) = (self.target.meter.cpu()?, page::gallery_fetches(site));
        let seen = closed(http, &self.call, limits).await;
        tokio::time::sleep(CLEANING).await;
        let cpu = self.target.meter.cpu()?.saturating_sub(cpu);
        let fetches = page::gallery_fetches(site) - fetches;
        if fetches > 0 {
            self.figures.fetches = Some(count(fetches) / count(seen.latencies.len().max(1)));
        }
        self.read_memory();
        self.figures.rounds.push(Round { seen, cpu });
        Ok(())
    }

    fn read_memory(&mut self) {
        self.figures.memory = self.figures.memory.max(self.target.meter.memory());
    }
}
