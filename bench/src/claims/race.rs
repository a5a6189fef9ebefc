//! Callers that send one request after the other until the quota is exhausted for this month, the key is refused, or they have their
//! files.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use platen_harness::{client::Target, operator::Account, wait::MAX_WAIT};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::system::System;
use crate::{callers::RECONNECT_INTERVAL, http_client::RESPONSE_TIMEOUT};

/// The pause after a request that was refused for now.
const PAUSE: Duration = Duration::from_millis(200);
/// Where edges begin a new month, the end of one that is nearer than this is awaited, in seconds.
const NEAR_END: u64 = 3_600;

/// One request, as its caller saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) began: Instant,
    pub(super) ended: Instant,
    /// `None` without a response.
    pub(super) status: Option<u16>,
}

/// Callers that run.
pub(super) struct Race(JoinSet<Option<Vec<Seen>>>);

impl Race {
    /// The callers begin at once, at the edges in turn.
    pub(super) fn start(system: &System, account: &Account, callers: usize, max_files: usize) -> Self {
        let targets: Vec<Target> = system.edges.iter().map(|edge| edge.app.target(account)).collect();
        let awaited_end = if system.new_month.is_some() { NEAR_END } else { 0 };
        let run = |caller: usize| call(targets.clone(), caller, max_files, awaited_end);
        Self((0..callers).map(run).collect())
    }

    /// All requests.
    pub(super) async fn finish(mut self) -> Result<Vec<Seen>> {
        let mut all = Vec::new();
        while let Some(caller) = self.0.join_next().await {
            let seen = caller?;
            ensure!(seen.is_some(), "a caller was not done after {MAX_WAIT:?}");
            all.extend(seen.into_iter().flatten());
        }
        Ok(all)
    }
}

/// The requests of one caller, which goes on to the next edge if one does not respond, and beyond the end of a month that is
/// `awaited_end` seconds away or nearer; `None` if they do not end.
async fn call(targets: Vec<Target>, caller: usize, max_files: usize, awaited_end: u64) -> Option<Vec<Seen>> {
    let (mut all, mut files, mut edge, start) = (Vec::new(), 0, caller, Instant::now());
    while files < max_files {
        if start.elapsed() > MAX_WAIT {
            return None;
        }
        let began = Instant::now();
        let answer = timeout(RESPONSE_TIMEOUT, targets[edge % targets.len()].minimal().send()).await;
        let answer = answer.ok().and_then(Result::ok);
        all.push(Seen { began, ended: Instant::now(), status: answer.as_ref().map(|answer| answer.status) });
        let Some(answer) = answer else {
            edge += 1;
            sleep(RECONNECT_INTERVAL).await;
            continue;
        };
        let wait = || answer.header("retry-after").ok().and_then(|wait| wait.parse().ok()).unwrap_or(0);
        match answer.status {
            200 => files += 1,
            429 if wait() > awaited_end => break,
            429 | 503 | 504 => sleep(PAUSE).await,
            // The key is refused, or a status that the case reports.
            _ => break,
        }
    }
    Some(all)
}
