//! Callers that send requests of a minimal page, each one after the other, and the responses to them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_harness::client::Target;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{http_client::RESPONSE_TIMEOUT, statistics::numbers};

/// Before a caller whose connection failed sends its next request.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);

/// The responses to a series of requests.
#[derive(Default)]
pub(crate) struct Responses {
    by_status: BTreeMap<u16, usize>,
    /// Requests without a response.
    none: usize,
    /// Of each response.
    pub(crate) latencies: Vec<Duration>,
}

impl Responses {
    /// The number of requests whose response was no 200.
    pub(crate) fn failed(&self) -> usize {
        let others = self.by_status.iter().filter(|(status, _)| **status != 200);
        self.none + others.map(|(_, number)| number).sum::<usize>()
    }

    /// Sends one request.
    pub(crate) async fn send(&mut self, target: &Target) {
        let began = Instant::now();
        let Ok(Ok(answer)) = timeout(RESPONSE_TIMEOUT, target.minimal().send()).await else {
            self.none += 1;
            return sleep(RECONNECT_INTERVAL).await;
        };
        self.latencies.push(began.elapsed());
        *self.by_status.entry(answer.status).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        for (status, number) in other.by_status {
            *self.by_status.entry(status).or_default() += number;
        }
        self.none += other.none;
        self.latencies.extend(other.latencies);
    }
}

impl fmt::Display for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&numbers(&self.by_status))?;
        if self.none > 0 { write!(f, ", {} without a response", self.none) } else { Ok(()) }
    }
}

/// Callers that send requests until they are stopped.
pub(crate) struct Callers {
    stop: Arc<AtomicBool>,
    callers: JoinSet<Responses>,
}

impl Callers {
    /// Callers begin at different targets and take different steps.
    pub(crate) fn start(targets: &[Target], callers: usize) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let run = |caller: usize| {
            let (stop, targets) = (Arc::clone(&stop), targets.to_vec());
            async move {
                let (mut responses, mut index) = (Responses::default(), caller * targets.len() / callers);
                while !stop.load(Ordering::Relaxed) {
                    responses.send(&targets[index % targets.len()]).await;
                    index += 1 + caller % 7;
                }
                responses
            }
        };
        let callers = (0..callers).map(run).collect();
        Self { stop, callers }
    }

    pub(crate) async fn finish(mut self) -> Result<Responses> {
        self.stop.store(true, Ordering::Relaxed);
        let mut responses = Responses::default();
        while let Some(caller) = self.callers.join_next().await {
            responses.add(caller?);
        }
        Ok(responses)
    }
}
