//! Good requests at a steady rate.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_tests::{client::RENDER, farm::FILE};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    task::spawn_local,
    time::{sleep, timeout},
};

use crate::{
    load::{
        client::{Client, Request},
        on_own_thread,
    },
    statistics::{count, percentile_ms},
};

/// Of a client that waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const CLIENTS: usize = 8;
/// Mean wait between the requests of a client, in milliseconds.
const MEAN_WAIT_MS: u64 = 40;
/// Larger than the share of a request's body that fits into its first packet.
const SMALL_BYTES: usize = 20_000;
/// More than a server reads before it looks the key up.
const LARGE_BYTES: usize = 1_200_000;
/// One of this many requests is large.
const LARGE_SHARE: u32 = 6;

/// The senders of good requests. Every second request opens a new connection.
pub(super) struct Good {
    address: SocketAddr,
    small: Request,
    large: Request,
    seed: u64,
}

/// The answers to good requests.
#[derive(Debug, Default)]
pub(super) struct Measured {
    small: Vec<Duration>,
    large: Vec<Duration>,
    wrong: BTreeMap<String, usize>,
}

impl Measured {
    pub(super) fn small_p95(&self) -> f64 {
        percentile_ms(&self.small, 95).unwrap_or(f64::INFINITY)
    }

    pub(super) fn large_p95(&self) -> f64 {
        percentile_ms(&self.large, 95).unwrap_or(f64::INFINITY)
    }

    fn right(&self) -> usize {
        self.small.len() + self.large.len()
    }

    pub(super) fn right_percent(&self) -> f64 {
        let right = count(self.right());
        100.0 * right / (right + count(self.wrong.values().sum())).max(1.0)
    }

    pub(super) fn text(&self) -> String {
        let wrong: Vec<String> =
            self.wrong.iter().map(|(what, answers)| format!(", {answers} × {what}")).collect();
        let wrong = wrong.concat();
        let (small, large) = (self.small_p95(), self.large_p95());
        format!("{} right{wrong}; p95 {small:.1} ms, of 1.2 MB {large:.1} ms", self.right())
    }
}

impl Good {
    pub(super) fn new(address: SocketAddr, key: &str, seed: u64) -> Self {
        let request = |bytes| Request::post(RENDER, key, format!(r#"{{"html":"{}"}}"#, "x".repeat(bytes)));
        Self { address, small: request(SMALL_BYTES), large: request(LARGE_BYTES), seed }
    }

    /// Sends requests for as long as this.
    pub(super) async fn run(&self, duration: Duration) -> Result<Measured> {
        let (address, seed) = (self.address, self.seed);
        let requests = [self.small.clone(), self.large.clone()];
        let (measured, _) = on_own_thread(async move || {
            let until = Instant::now() + duration;
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let random = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
                    spawn_local(one_client(address, requests.clone(), until, random))
                })
                .collect();
            let mut all = Measured::default();
            for client in clients {
                let Measured { small, large, wrong } = client.await?;
                all.small.extend(small);
                all.large.extend(large);
                for (what, answers) in wrong {
                    *all.wrong.entry(what).or_default() += answers;
                }
            }
            Ok(all)
        })
        .await?;
        Ok(measured)
    }
}

async fn one_client(
    address: SocketAddr,
    [small, large]: [Request; 2],
    until: Instant,
    mut random: StdRng,
) -> Measured {
    let mut measured = Measured::default();
    let mut client = Client::new(address, Ipv4Addr::LOCALHOST);
    while Instant::now() < until {
        if random.random() {
            client.disconnect();
        }
        let is_large = random.random_ratio(1, LARGE_SHARE);
        let started = Instant::now();
        let wrong = match timeout(ANSWER_TIMEOUT, client.send(if is_large { &large } else { &small })).await {
            Ok(Ok(answer)) if answer.file("image/png").is_ok_and(|file| file == FILE) => {
                if is_large { &mut measured.large } else { &mut measured.small }.push(started.elapsed());
                None
            }
            Ok(Ok(answer)) => Some(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))),
            Ok(Err(error)) => Some(format!("{error:#}")),
            Err(_) => Some("no answer in time".to_owned()),
        };
        if let Some(wrong) = wrong {
            *measured.wrong.entry(wrong).or_default() += 1;
        }
        sleep(Duration::from_millis(random.random_range(0..2 * MEAN_WAIT_MS))).await;
    }
    measured
}
