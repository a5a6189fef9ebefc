//! Sends jobs and notes what came back: as many at once as asked for, or at a given rate.
//!
//! Invariant: every answer is read to its end and checked; one that is not as expected is counted
//! as an error and never as a fast success.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use futures::future::join_all;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::call::Call;

/// Far beyond any job: it only keeps a side that hangs from hanging the run.
const ANSWER_LIMIT: Duration = Duration::from_mins(2);

/// When a stretch of jobs ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// After so many jobs.
    pub(crate) jobs: usize,
    /// No job is begun after so long, save the first of each worker.
    pub(crate) time: Duration,
    /// Jobs under way at once.
    pub(crate) concurrency: usize,
}

/// What a stretch of jobs saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) elapsed: Duration,
    /// Of the good answers.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) errors: Vec<String>,
}

impl Seen {
    fn of(started: Instant, outcomes: impl IntoIterator<Item = Result<Duration>>) -> Self {
        let mut seen = Self { elapsed: started.elapsed(), ..Self::default() };
        for outcome in outcomes {
            match outcome {
                Ok(latency) => seen.latencies.push(latency),
                Err(error) => seen.errors.push(format!("{error:#}")),
            }
        }
        seen
    }
}

/// A closed loop: each worker sends its next job when the last one is answered.
pub(crate) async fn closed(http: &reqwest::Client, call: &Arc<Call>, limits: Limits) -> Seen {
    let begun = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let workers = (0..limits.concurrency).map(|_| {
        let (http, call, begun) = (http.clone(), Arc::clone(call), Arc::clone(&begun));
        tokio::spawn(async move {
            let mut outcomes = Vec::new();
            while begun.fetch_add(1, Ordering::Relaxed) < limits.jobs
                && (outcomes.is_empty() || started.elapsed() < limits.time)
            {
                outcomes.push(timed(&http, &call, Instant::now()).await);
            }
            outcomes
        })
    });
    let outcomes = join_all(workers).await;
    Seen::of(started, outcomes.into_iter().flat_map(|worker| worker.expect("a worker does not panic")))
}

/// An open loop: jobs begin at random, `rate` a second in the mean, whatever is still under way.
pub(crate) async fn open(http: &reqwest::Client, call: &Arc<Call>, rate: f64, jobs: usize) -> Seen {
    // The same arrivals for every side.
    let mut random = StdRng::seed_from_u64(1);
    let mut at = 0.0;
    let started = Instant::now();
    let mut under_way = Vec::new();
    for _ in 0..jobs {
        at += -(1.0 - random.random::<f64>()).ln() / rate;
        let due = started + Duration::from_secs_f64(at);
        tokio::time::sleep_until(due.into()).await;
        let (http, call) = (http.clone(), Arc::clone(call));
        under_way.push(tokio::spawn(async move { timed(&http, &call, due).await }));
    }
    let outcomes = join_all(under_way).await;
    Seen::of(started, outcomes.into_iter().map(|job| job.expect("a job does not panic")))
}

/// One job, timed from `since` to the last byte.
async fn timed(http: &reqwest::Client, call: &Call, since: Instant) -> Result<Duration> {
    let file = once(http, call).await?;
    let latency = since.elapsed();
    call.plausible(&file)?;
    Ok(latency)
}

/// One job and its file.
pub(crate) async fn once(http: &reqwest::Client, call: &Call) -> Result<Bytes> {
    let answer = call.request(http).timeout(ANSWER_LIMIT).send().await.context("no answer")?;
    let status = answer.status();
    let body = answer.bytes().await.context("the answer breaks off")?;
    if !status.is_success() {
        let said = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        bail!("{status}: {said}");
    }
    ensure!(!body.is_empty(), "an empty file");
    Ok(body)
}
