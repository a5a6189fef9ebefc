//! The cost of the edge on `platen up`: requests per second, latency and CPU time of the whole
//! server process, with a stub farm.
//!
//! Invariant: every case sends the same number of requests, over persistent connections. Every response is read to its
//! end, and its status and length are checked.

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
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    database::DatabaseKind,
    farm::{Behaviour, StandInFarm},
    operator::Quota,
};

use crate::{
    http_client,
    overload::Server,
    statistics::{LoadResult, count, milliseconds, percentiles_ms},
};

const FILE_BYTES: usize = 1024 * 1024;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Requests of each case in each round
    #[arg(long, default_value_t = 3_000)]
    requests: usize,
    /// Concurrent requests
    #[arg(long, default_value_t = 8)]
    concurrency: usize,
    /// Rounds; the one with the median rate is printed
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Runs every case and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let Server { app, address: server, .. } =
        &Server::start_with(&AppOptions::with_farm(DatabaseKind::File, farm.url())).await?;
    // Clients of different accounts and addresses.
    let mut rounds = Vec::new();
    for round in 0..=options.rounds {
        let mut clients = Vec::new();
        for worker in 0..options.concurrency {
            let account = app.operator.account(Quota::Unlimited).await?;
            farm.behave(&account.id, Behaviour::LongFile(FILE_BYTES as u64));
            let address = Ipv4Addr::new(127, 1, round.try_into()?, (worker + 1).try_into()?);
            clients.push(Client { address, authorization: format!("Bearer {}", account.key) });
        }
        rounds.push(clients);
    }
    let html = br#"{"html":"<h1>Hello</h1>","format":"pdf"}"#.as_slice();
    let case = |name, body, status, length| Case {
        name,
        authorization: None,
        body: Bytes::from_static(body),
        status,
        length,
    };
    let cases = [
        Case { authorization: Some("Bearer junk"), ..case("401, malformed key", html, 401, None) },
        case("400, unknown field", br#"{"htm":"x"}"#, 400, None),
        case("200, relayed file of 1 MiB", html, 200, Some(FILE_BYTES)),
    ];

    println!("| response | requests/s | p50 ms | p95 ms | p99 ms | server CPU ms per request |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for case in &cases {
        send(*server, case, options.requests / 10, &rounds[0]).await?;
        let mut results = Vec::new();
        for clients in &rounds[1..] {
            let before = app.process.cpu_time()?;
            let result = send(*server, case, options.requests, clients).await?;
            let cpu_time = app.process.cpu_time()?.saturating_sub(before);
            results.push((result, cpu_time));
        }
        results.sort_by(|(one, _), (other, _)| one.rate().total_cmp(&other.rate()));
        let (result, cpu_time) = &results[results.len() / 2];
        let [p50, p95, p99] = percentiles_ms(&result.latencies, [50, 95, 99]);
        let cpu_ms = milliseconds(*cpu_time) / count(options.requests);
        println!("| {} | {:.0} | {p50:.2} | {p95:.2} | {p99:.2} | {cpu_ms:.3} |", case.name, result.rate());
    }
    Ok(())
}

/// A request and its expected response.
#[derive(Clone)]
struct Case {
    name: &'static str,
    /// Sent instead of the client's key.
    authorization: Option<&'static str>,
    body: Bytes,
    status: u16,
    /// Expected length of the response's body in bytes.
    length: Option<usize>,
}

/// Who sends requests.
#[derive(Clone)]
struct Client {
    address: Ipv4Addr,
    authorization: String,
}

/// Sends `requests` of a case from all clients at once.
///
/// # Errors
/// The first response that is not the expected one.
async fn send(server: SocketAddr, case: &Case, requests: usize, clients: &[Client]) -> Result<LoadResult> {
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
