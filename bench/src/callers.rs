//! Callers that send requests, each one after the other, and the responses to them.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_harness::client::Call;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{http_client::RESPONSE_TIMEOUT, statistics::Tally};

/// The pause before a caller whose connection failed sends its next request.
pub(crate) const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);

/// The responses to a series of requests.
#[derive(Default)]
pub(crate) struct Responses {
    /// The status, or that there was none.
    by_status: Tally<String>,
    /// The time to each response.
    pub(crate) latencies: Vec<Duration>,
}

impl Responses {
    /// The number of requests whose response was no 200.
    pub(crate) fn failed(&self) -> usize {
        self.by_status.0.iter().filter(|(status, _)| *status != "200").map(|(_, number)| number).sum()
    }

    /// Sends one request.
    pub(crate) async fn send(&mut self, call: Call) {
        let began = Instant::now();
        let Ok(Ok(answer)) = timeout(RESPONSE_TIMEOUT, call.send()).await else {
            self.by_status.add("without a response".to_owned());
            return sleep(RECONNECT_INTERVAL).await;
        };
        self.latencies.push(began.elapsed());
        self.by_status.add(answer.status.to_string());
    }

    fn add(&mut self, other: Self) {
        for (status, number) in other.by_status.0 {
            *self.by_status.0.entry(status).or_default() += number;
        }
        self.latencies.extend(other.latencies);
    }
}

impl fmt::Display for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by_status.fmt(f)
    }
}

/// Callers that send requests until they are stopped.
pub(crate) struct Callers {
    stop: Arc<AtomicBool>,
    callers: JoinSet<Responses>,
}

impl Callers {
    /// Callers begin at different requests and take different steps.
    pub(crate) fn start(calls: impl IntoIterator<Item = Call>, callers: usize) -> Self {
        let calls: Arc<[Call]> = calls.into_iter().collect();
        let stop = Arc::<AtomicBool>::default();
        let run = |caller: usize| {
            let (stop, calls) = (Arc::clone(&stop), Arc::clone(&calls));
            async move {
                let (mut responses, mut index) = (Responses::default(), caller * calls.len() / callers);
                while !stop.load(Ordering::Relaxed) {
                    responses.send(calls[index % calls.len()].clone()).await;
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
