//! The cost of the edge on `platen up`: requests per second, latency and CPU time of the whole
//! server process, with a stub farm.
//!
//! Invariant: every case sends the same number of requests.

mod load;

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use platen_tests::{
    app::{FARM_TOKEN, Options as AppOptions, TestApp},
    database::DatabaseKind,
    farm::{Behaviour, StandInFarm},
    operator::Quota,
    settings::Settings,
};

use self::load::{Case, Client};
use crate::statistics::{count, milliseconds};

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
    let settings = Settings::from_env()?;
    let directory = tempfile::tempdir()?;
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let app_options = AppOptions::with_farm(DatabaseKind::File, farm.url());
    let app = TestApp::start(&app_options, &settings, &reqwest::Client::new(), directory.path()).await?;
    let server = app.base_url.strip_prefix("http://").context("the base URL is not an http URL")?.parse()?;
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
        load::run(server, case, options.requests / 10, &rounds[0]).await?;
        let mut results = Vec::new();
        for clients in &rounds[1..] {
            let before = app.process.cpu_time()?;
            let result = load::run(server, case, options.requests, clients).await?;
            let cpu_time = app.process.cpu_time()?.saturating_sub(before);
            results.push((result, cpu_time));
        }
        results.sort_by(|(one, _), (other, _)| one.rate().total_cmp(&other.rate()));
        let (result, cpu_time) = &results[results.len() / 2];
        let [p50, p95, p99] = [50, 95, 99].map(|percent| result.percentile_ms(percent).unwrap_or(f64::NAN));
        let cpu_ms = milliseconds(*cpu_time) / count(options.requests);
        println!("| {} | {:.0} | {p50:.2} | {p95:.2} | {p99:.2} | {cpu_ms:.3} |", case.name, result.rate());
    }
    Ok(())
}
