//! The load generator: a closed loop with fixed concurrency.
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
                outcomes.push(timed(&http, request).await);
            }
        })
    });
    let outcomes = join_all(workers).await;
    let outcomes = outcomes.into_iter().flat_map(|worker| worker.expect("a worker does not panic"));
    LoadResult::new(started, outcomes)
}

/// The latency of one job to the last byte.
async fn timed(http: &reqwest::Client, request: &PreparedRequest) -> Result<Duration> {
    let since = Instant::now();
    let file = request.send(http).await?;
    let latency = since.elapsed();
    request.check(&file)?;
    Ok(latency)
}
