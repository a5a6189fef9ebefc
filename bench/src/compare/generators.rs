//! Load generators: a closed loop with fixed concurrency and an open loop with a fixed mean rate.
//!
//! Invariant: every response is read to its end and checked. An unexpected response counts as an error.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::prepared_request::PreparedRequest;
use crate::statistics::LoadResult;

/// When a closed loop ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadLimits {
    pub(crate) jobs: usize,
    /// The time after which no job is started, except for the first one of each worker.
    pub(crate) time: Duration,
    pub(crate) concurrency: usize,
}

/// Closed loop: each worker sends its next job after the response to the previous one. The requests are sent in
/// their order, and then again.
pub(crate) async fn closed_loop(
    http: &reqwest::Client,
    requests: &Arc<[PreparedRequest]>,
    limits: LoadLimits,
) -> LoadResult {
    let sent = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let workers = (0..limits.concurrency).map(|_| {
        let (http, requests, sent) = (http.clone(), Arc::clone(requests), Arc::clone(&sent));
        tokio::spawn(async move {
            let mut outcomes = Vec::new();
            loop {
                let number = sent.fetch_add(1, Ordering::Relaxed);
                let is_over = !outcomes.is_empty() && started.elapsed() >= limits.time;
                if number >= limits.jobs || is_over {
                    return outcomes;
                }
                let request = &requests[number % requests.len()];
                outcomes.push(timed(&http, request, Instant::now()).await);
            }
        })
    });
    let outcomes = join_all(workers).await;
    let outcomes = outcomes.into_iter().flat_map(|worker| worker.expect("a worker does not panic"));
    LoadResult::new(started, outcomes)
}

/// Open loop: jobs start at random times, on average `rate` per second, however many are in progress.
/// Latencies count from the scheduled start.
pub(crate) async fn open_loop(
    http: &reqwest::Client,
    request: &Arc<PreparedRequest>,
    rate: f64,
    jobs: usize,
) -> LoadResult {
    // So that every renderer gets the same arrival times.
    let mut random = StdRng::seed_from_u64(1);
    let mut offset = 0.0;
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..jobs {
        offset += -(1.0 - random.random::<f64>()).ln() / rate;
        let due = started + Duration::from_secs_f64(offset);
        tokio::time::sleep_until(due.into()).await;
        let (http, request) = (http.clone(), Arc::clone(request));
        tasks.push(tokio::spawn(async move { timed(&http, &request, due).await }));
    }
    let outcomes = join_all(tasks).await;
    LoadResult::new(started, outcomes.into_iter().map(|job| job.expect("a job does not panic")))
}

/// The latency of one job, from `since` to the last byte.
async fn timed(http: &reqwest::Client, request: &PreparedRequest, since: Instant) -> Result<Duration> {
    let file = request.send(http).await?;
    let latency = since.elapsed();
    request.check(&file)?;
    Ok(latency)
}
