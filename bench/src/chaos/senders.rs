//! The senders of the mixed load.
//!
//! Invariant: a request has one outcome. Requests start at random times at a fixed mean rate, however many are in
//! progress.

use std::{
    cell::RefCell,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_harness::client::RENDER;
use rand::{RngExt as _, rngs::StdRng};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    task::{JoinHandle, spawn_blocking, spawn_local},
    time::{sleep, sleep_until},
};

use super::plan::{Planned, Planner, Verdict};
use crate::{
    client::{Client, Request, connect},
    neighbours::hostile_pages,
    statistics::count,
};

/// More than wait in the server, its queue and the farm's.
const MAX_IN_PROGRESS: usize = 2_000;
/// One of this many clients disconnects.
const HANG_UP_SHARE: u32 = 20;
const HANG_UP_MS: std::ops::Range<u64> = 0..2_000;
/// More hostile pages: one that opens windows, and one that leaves for a URL that crashes its renderer.
const HOSTILE: [&str; 2] =
    ["<script>for (;;) open('about:blank')</script>", "<script>location = 'chrome://crash'</script>"];

/// What became of a request.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// The index of the account; the one after the last is the hostile account.
    pub(super) caller: usize,
    pub(super) started: Instant,
    pub(super) ended: Instant,
    pub(super) verdict: Verdict,
}

impl Outcome {
    pub(super) fn latency(&self) -> Duration {
        self.ended - self.started
    }
}

/// The load.
pub(super) struct Load {
    pub(super) address: SocketAddr,
    pub(super) planner: Planner,
    pub(super) random: StdRng,
    pub(super) hostile_key: String,
    pub(super) hostile: Arc<AtomicBool>,
    pub(super) cut: Arc<AtomicBool>,
}

type Clients = Rc<RefCell<Vec<Client>>>;

impl Load {
    /// Files per second with as many clients as this, each with one request at a time.
    pub(super) async fn capacity(&mut self, clients: usize, duration: Duration) -> f64 {
        let (until, started) = (Instant::now() + duration, Instant::now());
        let load = RefCell::new(self);
        let files = futures::future::join_all((0..clients).map(async |_| {
            let (mut files, address) = (0, load.borrow().address);
            let mut client = Client::new(address);
            while Instant::now() < until {
                let planned = {
                    let load = &mut **load.borrow_mut();
                    load.planner.next(&mut load.random, false)
                };
                let answer = client.send(&planned.request);
                files += usize::from(answer.await.is_ok_and(|answer| answer.status == 200));
            }
            files
        }))
        .await;
        count(files.iter().sum()) / started.elapsed().as_secs_f64()
    }

    /// Sends requests at this mean rate per second until this instant, and waits for their answers.
    pub(super) async fn run(&mut self, rate: f64, until: Instant) -> Result<Vec<Outcome>> {
        let clients = Clients::default();
        let (mut running, mut outcomes) = (Vec::<JoinHandle<Outcome>>::new(), Vec::new());
        let (mut next, mut hostile) = (Instant::now(), 0);
        while next < until {
            sleep_until(next.into()).await;
            next += Duration::from_secs_f64(-self.random.random_range(f64::EPSILON..1.0).ln() / rate);
            if self.hostile.swap(false, Ordering::SeqCst) {
                running.push(self.send_hostile(hostile));
                hostile += 1;
            }
            if running.len() >= MAX_IN_PROGRESS {
                reap(&mut running, &mut outcomes).await?;
            }
            if running.len() < MAX_IN_PROGRESS {
                running.push(self.send(&clients));
            }
        }
        for task in running {
            outcomes.push(task.await?);
        }
        Ok(outcomes)
    }

    fn send(&mut self, clients: &Clients) -> JoinHandle<Outcome> {
        let planned = self.planner.next(&mut self.random, true);
        let is_cut = self.cut.swap(false, Ordering::SeqCst);
        if is_cut || self.random.random_ratio(1, HANG_UP_SHARE) {
            let bytes = planned.request.bytes(self.address);
            // A third of them before the request is complete.
            let sent = if self.random.random_ratio(1, 3) {
                self.random.random_range(0..bytes.len())
            } else {
                bytes.len()
            };
            let time = Duration::from_millis(self.random.random_range(HANG_UP_MS));
            let hang_up = hang_up(self.address, bytes, sent, time, is_cut || self.random.random());
            return spawn_local(async move {
                let started = Instant::now();
                let verdict = hang_up
                    .await
                    .map_or_else(|error| Verdict::Wrong(format!("{error:#}")), |()| Verdict::HungUp);
                Outcome { caller: planned.caller, started, ended: Instant::now(), verdict }
            });
        }
        let (clients, address) = (Rc::clone(clients), self.address);
        spawn_local(async move {
            let client = clients.borrow_mut().pop();
            let mut client = client.unwrap_or_else(|| Client::new(address));
            let outcome = one(&mut client, planned).await;
            clients.borrow_mut().push(client);
            outcome
        })
    }

    fn send_hostile(&self, number: usize) -> JoinHandle<Outcome> {
        let pages: Vec<&str> = hostile_pages().into_iter().chain(HOSTILE).collect();
        let body = json!({ "html": pages[number % pages.len()] }).to_string();
        let request = Request::post(RENDER, &self.hostile_key, body);
        let (caller, mut client) = (self.planner.callers.len(), Client::new(self.address));
        spawn_local(async move {
            let started = Instant::now();
            let verdict = match client.send(&request).await {
                Ok(answer) if matches!(answer.status, 200 | 422 | 502 | 504) => Verdict::Right(answer.status),
                Ok(answer) if answer.status == 503 => Verdict::Refused(503),
                Ok(answer) => Verdict::Wrong(format!("hostile page: {}", answer.summary())),
                Err(error) => Verdict::Wrong(format!("hostile page: {error:#}")),
            };
            Outcome { caller, started, ended: Instant::now(), verdict }
        })
    }
}

/// Takes the outcomes of the tasks that have ended.
async fn reap(running: &mut Vec<JoinHandle<Outcome>>, outcomes: &mut Vec<Outcome>) -> Result<()> {
    let (ended, rest): (Vec<_>, Vec<_>) =
        std::mem::take(running).into_iter().partition(JoinHandle::is_finished);
    *running = rest;
    for task in ended {
        outcomes.push(task.await?);
    }
    Ok(())
}

async fn one(client: &mut Client, planned: Planned) -> Outcome {
    let (caller, started) = (planned.caller, Instant::now());
    let answer = client.send(&planned.request).await;
    let ended = Instant::now();
    let verdict = match answer {
        Ok(answer) => spawn_blocking(move || planned.verdict(&answer)).await,
        Err(error) => Ok(Verdict::Wrong(format!("{}: {error:#}", planned.kind))),
    };
    let verdict = verdict.unwrap_or_else(|error| Verdict::Wrong(error.to_string()));
    Outcome { caller, started, ended, verdict }
}

/// Sends the first bytes of a request and disconnects, with a reset if `resets`.
async fn hang_up(
    address: SocketAddr,
    bytes: Vec<u8>,
    sent: usize,
    after: Duration,
    resets: bool,
) -> Result<()> {
    let mut stream = connect(address).await?;
    if resets {
        stream.set_zero_linger()?;
    }
    // The server may refuse a request before it has read all of it.
    let _ = stream.write_all(&bytes[..sent]).await;
    sleep(after).await;
    Ok(())
}
