//! The client whose requests must all be answered with their files.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    sync::oneshot,
    time::{sleep, sleep_until, timeout},
};

use super::{Answers, render_request};
use crate::{client::Client, http_client::RESPONSE_TIMEOUT, number_marker};

const INTERVAL: Duration = Duration::from_millis(50);
/// One of this many requests is large.
const LARGE_SHARE: u16 = 6;
/// More than a server reads before it looks the key up.
const LARGE_BYTES: usize = 1_200_000;
/// Requests on connections of their own that are sent at the end, all at once.
const LAST_REQUESTS: usize = 8;

/// A client with one request at a time. Every second request opens a new connection.
#[derive(Debug, Clone)]
pub(super) struct Good {
    pub(super) address: SocketAddr,
    pub(super) key: String,
}

/// The answers to good requests. 200 stands for the right file.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) answers: Answers,
    pub(super) latencies: Vec<Duration>,
    /// The answers to the requests that were in progress at the end.
    pub(super) last: Answers,
}

impl Good {
    /// Sends requests until this instant, then the last ones, and waits for all answers. When the last ones are connected, it
    /// says so: a server that stops answers connections that it has, and refuses further ones.
    pub(super) async fn run(&self, until: Instant, connected: oneshot::Sender<()>) -> Measured {
        let last = async {
            sleep_until(until.into()).await;
            let mut clients = vec![];
            for _ in 0..LAST_REQUESTS {
                let mut client = Client::new(self.address, Ipv4Addr::LOCALHOST);
                clients.push(client.connect().await.map(|()| client));
            }
            let _ = connected.send(());
            join_all(clients.into_iter().enumerate().map(async |(number, client)| {
                self.send(&mut client?, u16::MAX - u16::try_from(number).unwrap_or_default()).await
            }))
            .await
        };
        let (mut measured, last) = tokio::join!(self.one_after_the_other(until), last);
        for outcome in last {
            measured.last.add(outcome, until);
        }
        measured
    }

    async fn one_after_the_other(&self, until: Instant) -> Measured {
        let (mut measured, mut number) = (Measured::default(), 0_u16);
        let mut random = StdRng::seed_from_u64(1);
        let mut client = Client::new(self.address, Ipv4Addr::LOCALHOST);
        while Instant::now() < until {
            if random.random() {
                client.disconnect();
            }
            number = number.wrapping_add(1);
            let started = Instant::now();
            let outcome = self.send(&mut client, number).await;
            if Instant::now() >= until {
                measured.last.add(outcome, until);
                break;
            }
            measured.latencies.push(started.elapsed());
            measured.answers.add(outcome, until);
            sleep(INTERVAL).await;
        }
        measured
    }

    /// The status: 200 with the file of this number, or 503.
    async fn send(&self, client: &mut Client, number: u16) -> Result<u16> {
        let padding = if number.is_multiple_of(LARGE_SHARE) { LARGE_BYTES } else { 0 };
        let request = render_request(&self.key, number, padding);
        let answer = timeout(RESPONSE_TIMEOUT, client.send(&request)).await??;
        if answer.status == 503 {
            answer.header("retry-after")?;
            return Ok(503);
        }
        let image = image::load_from_memory(answer.file("image/png")?)?.to_rgba8();
        ensure!(number_marker::decode(&image) == Some(number), "the file of another request");
        Ok(200)
    }
}
