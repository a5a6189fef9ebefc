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
use futures::future::try_join_all;
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    client::RENDER,
    database::DatabaseKind,
    farm::{Behaviour, StandInFarm},
    operator::Quota,
};

use crate::{
    client::{Client, Request},
    server::Server,
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
        &Server::start(&AppOptions::with_farm(DatabaseKind::File, farm.url())).await?;
    // Clients of different accounts and addresses.
    let mut rounds = Vec::new();
    for round in 0..=options.rounds {
        let mut clients = Vec::new();
        for worker in 0..options.concurrency {
            let account = app.operator.account(Quota::Unlimited).await?;
            farm.behave(&account.id, Behaviour::LongFile(FILE_BYTES as u64));
            clients.push((Ipv4Addr::new(127, 1, round.try_into()?, (worker + 1).try_into()?), account.key));
        }
        rounds.push(clients);
    }
    let html = r#"{"html":"<h1>Hello</h1>","format":"pdf"}"#;
    let case = |name, body, status| Case { name, key: None, body, status, length: None };
    let cases = [
        Case { key: Some("junk"), ..case("401, malformed key", html, 401) },
        case("400, unknown field", r#"{"htm":"x"}"#, 400),
        Case { length: Some(FILE_BYTES), ..case("200, relayed file of 1 MiB", html, 200) },
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
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Sent instead of the client's key.
    key: Option<&'static str>,
    body: &'static str,
    status: u16,
    /// Expected length of the response's body in bytes.
    length: Option<usize>,
}

/// Sends `requests` of a case from all clients at once, each with an address and a key.
///
/// # Errors
/// The first response that is not the expected one.
async fn send(
    server: SocketAddr,
    case: &Case,
    requests: usize,
    clients: &[(Ipv4Addr, String)],
) -> Result<LoadResult> {
    let left = Arc::new(AtomicUsize::new(requests));
    let started = Instant::now();
    let workers = clients.iter().map(|(address, key)| {
        let request = Request::post(RENDER, case.key.unwrap_or(key), case.body);
        tokio::spawn(worker(Client::new(server, *address), request, *case, Arc::clone(&left)))
    });
    let latencies = try_join_all(workers).await?.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(LoadResult::new(started, latencies.into_iter().flatten().map(Ok)))
}

async fn worker(
    mut client: Client,
    request: Request,
    case: Case,
    left: Arc<AtomicUsize>,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    let decrement = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement).is_ok() {
        let started = Instant::now();
        let answer = client.send(&request).await.context(case.name)?;
        latencies.push(started.elapsed());
        ensure!(answer.status == case.status, "{}: {}", case.name, answer.summary());
        let length = answer.body.len();
        ensure!(case.length.is_none_or(|expected| expected == length), "{}: {length} bytes", case.name);
    }
    Ok(latencies)
}
