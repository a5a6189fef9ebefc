//! What the edge costs on `platen up`: requests a second, latency and CPU time of the whole
//! server process, with a stand-in for the farm.
//!
//! Invariant: the same number of requests in every case; the relayed file is also fetched from
//! the stand-in itself, so that the driver's own cost can be seen.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use platen_tests::{
    app::{FARM_TOKEN, Options as AppOptions, TestApp},
    database::DatabaseKind,
    farm::{Behaviour, StandInFarm},
    operator::Quota,
    settings::Settings,
};

use crate::{
    load::{self, Case},
    usage,
};

const FILE_BYTES: usize = 1024 * 1024;

/// How long and how wide.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Requests of each case in each round.
    #[arg(long, default_value_t = 3_000)]
    requests: usize,
    /// Requests under way at once.
    #[arg(long, default_value_t = 8)]
    concurrency: usize,
    /// Rounds; the one with the median rate is shown.
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
    let account = app.operator.account(Quota::Unlimited).await?;
    farm.behave(&account.id, Behaviour::LongFile(FILE_BYTES as u64));

    let server = address(&app.base_url)?;
    let key = format!("Bearer {}", account.key);
    let html = Bytes::from_static(br#"{"html":"<h1>Hello</h1>","format":"pdf"}"#);
    let case = |name, authorization: &str, body: &Bytes, status, length| Case {
        name,
        path: "/v1/render",
        authorization: authorization.to_owned(),
        body: body.clone(),
        status,
        length,
    };
    let cases = [
        case("401, malformed key", "Bearer junk", &html, 401, None),
        case("400, unknown field", &key, &Bytes::from_static(br#"{"htm":"x"}"#), 400, None),
        case("200, relayed file of 1 MiB", &key, &html, 200, Some(FILE_BYTES)),
    ];

    println!("| answer | requests/s | p50 ms | p95 ms | p99 ms | server CPU ms a request |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for case in &cases {
        load::run(server, case, options.requests / 10, options.concurrency).await?;
        let mut rounds = Vec::new();
        for _ in 0..options.rounds {
            let before = usage::cpu(app.process.pid())?;
            let seen = load::run(server, case, options.requests, options.concurrency).await?;
            let cpu = usage::cpu(app.process.pid())?.saturating_sub(before);
            rounds.push((seen, cpu));
        }
        rounds.sort_by(|(one, _), (other, _)| one.rate().total_cmp(&other.rate()));
        let (seen, cpu) = &rounds[rounds.len() / 2];
        let ms = |percent| seen.percentile(percent).as_secs_f64() * 1_000.0;
        let requests = f64::from(u32::try_from(options.requests)?);
        let cpu = cpu.as_secs_f64() * 1_000.0 / requests;
        println!(
            "| {} | {:.0} | {:.2} | {:.2} | {:.2} | {cpu:.3} |",
            case.name,
            seen.rate(),
            ms(50),
            ms(95),
            ms(99)
        );
    }
    Ok(())
}

fn address(url: &str) -> Result<std::net::SocketAddr> {
    url.strip_prefix("http://").context("an http URL")?.parse().context("an address")
}
