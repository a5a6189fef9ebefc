//! A closed loop of requests over persistent connections.
//!
//! Invariant: every response is read to its end, and its status and length are checked. An unexpected
//! response fails the run.

use std::{
    net::{Ipv4Addr, SocketAddr},
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

use crate::{http_client, statistics::LoadResult};

/// A request and its expected response.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Sent instead of the client's key.
    pub(super) authorization: Option<&'static str>,
    pub(super) body: Bytes,
    pub(super) status: u16,
    /// Expected length of the response's body in bytes.
    pub(super) length: Option<usize>,
}

/// Who sends requests.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: Ipv4Addr,
    pub(super) authorization: String,
}

/// Sends `requests` of a case from all clients at once.
///
/// # Errors
/// The first response that is not the expected one.
pub(super) async fn run(
    server: SocketAddr,
    case: &Case,
    requests: usize,
    clients: &[Client],
) -> Result<LoadResult> {
    let left = Arc::new(AtomicUsize::new(requests));
    let started = Instant::now();
    let workers = clients
        .iter()
        .map(|client| tokio::spawn(worker(server, client.clone(), case.clone(), Arc::clone(&left))));
    let latencies = try_join_all(workers).await?.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(LoadResult::new(started, latencies.into_iter().flatten().map(Ok)))
}

async fn worker(
    server: SocketAddr,
    client: Client,
    case: Case,
    left: Arc<AtomicUsize>,
) -> Result<Vec<Duration>> {
    let (mut sender, _) = http_client::connect(client.address, server).await?;
    let mut latencies = Vec::new();
    let decrement = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement).is_ok() {
        let request = Request::post("/v1/render")
            .header("host", server.to_string())
            .header("authorization", case.authorization.unwrap_or(&client.authorization))
            .header("content-type", "application/json")
            .body(Full::new(case.body.clone()))?;
        let started = Instant::now();
        sender.ready().await?;
        let response = sender.send_request(request).await.context(case.name)?;
        let status = response.status();
        let mut body = response.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        latencies.push(started.elapsed());
        ensure!(status == case.status, "{}: status {status}", case.name);
        ensure!(case.length.is_none_or(|expected| expected == length), "{}: {length} bytes", case.name);
    }
    Ok(latencies)
}
