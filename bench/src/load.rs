//! A closed loop of requests over kept-alive connections, and what it saw.
//!
//! Invariant: every answer is read to its end and its status and length are checked; one that is
//! not as expected is an error of the run, never a fast success.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// One kind of request and the answer it must get.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) authorization: String,
    pub(crate) body: Bytes,
    pub(crate) status: u16,
    /// Bytes of the answer's body, where they matter.
    pub(crate) length: Option<usize>,
}

/// What a run saw.
pub(crate) struct Seen {
    pub(crate) elapsed: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
}

impl Seen {
    pub(crate) fn rate(&self) -> f64 {
        f64::from(u32::try_from(self.latencies.len()).unwrap_or(u32::MAX)) / self.elapsed.as_secs_f64()
    }

    /// The latency that this share of the requests did not pass, by nearest rank.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
        self.latencies.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Sends `requests` of a case, `concurrency` at a time.
///
/// # Errors
/// The first answer that is not what the case expects.
pub(crate) async fn run(
    address: SocketAddr,
    case: &Case,
    requests: usize,
    concurrency: usize,
) -> Result<Seen> {
    let left = Arc::new(AtomicUsize::new(requests));
    let started = Instant::now();
    let workers = (0..concurrency).map(|_| tokio::spawn(worker(address, case.clone(), Arc::clone(&left))));
    let mut latencies = Vec::with_capacity(requests);
    for seen in try_join_all(workers).await? {
        latencies.extend(seen?);
    }
    let elapsed = started.elapsed();
    latencies.sort_unstable();
    Ok(Seen { elapsed, latencies })
}

async fn worker(address: SocketAddr, case: Case, left: Arc<AtomicUsize>) -> Result<Vec<Duration>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut latencies = Vec::new();
    let one_less = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
        let request = Request::post(case.path)
            .header("host", address.to_string())
            .header("authorization", &case.authorization)
            .header("content-type", "application/json")
            .body(Full::new(case.body.clone()))?;
        let started = Instant::now();
        sender.ready().await?;
        let answer = sender.send_request(request).await.context(case.name)?;
        let status = answer.status();
        let mut body = answer.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        latencies.push(started.elapsed());
        ensure!(status == case.status, "{}: answered {status}", case.name);
        ensure!(case.length.is_none_or(|expected| expected == length), "{}: {length} bytes", case.name);
    }
    Ok(latencies)
}
