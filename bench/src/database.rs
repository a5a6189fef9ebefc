//! The capacity of one database: requests per second and CPU time per request of a claim and its attempt log, and the
//! latency of an account beside many clients of another one whose quota is spent.
//!
//! Invariant: a stand-in farm responds at once, so the edge and the database are all that is measured.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    client::Target,
    database::DatabaseKind,
    farm::StandInFarm,
    operator::Quota,
    procfs,
};
use tokio::time::sleep;

use crate::{
    callers::{Callers, Responses},
    server::{Server, WARM_UP},
    statistics::{count, milliseconds, percentiles_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Callers, each of which sends one request after the other.
const CALLERS: usize = 32;
/// Clients of the account whose quota is spent.
const SPENT_CLIENTS: usize = 300;
/// Requests of the account beside them.
const REQUESTS: usize = 100;
const DATABASES: [(&str, DatabaseKind); 2] = [("file", DatabaseKind::File), ("sqld", DatabaseKind::Sqld)];

/// Measures on a file and on sqld, and prints tables.
pub(crate) async fn run(options: Options) -> Result<()> {
    println!(
        "| database | accounts | requests/s | p50 ms | p99 ms | `platen up` CPU ms per request | sqld CPU ms per request | other than 200 |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (name, kind) in DATABASES {
        for accounts in [1, 100] {
            capacity(&options, name, kind, accounts).await?;
        }
    }
    println!(
        "\n| database | latency of an account | p50 ms | p95 ms | max ms | responses to {SPENT_CLIENTS} clients of a spent account |\n\
         | --- | --- | --- | --- | --- | --- |"
    );
    for (name, kind) in DATABASES {
        turns(name, kind).await?;
    }
    Ok(())
}

struct Measured {
    server: Server,
    _farm: StandInFarm,
}

impl Measured {
    async fn start(kind: DatabaseKind) -> Result<Self> {
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let server = Server::start(&AppOptions::with_farm(kind, farm.url())).await?;
        Ok(Self { server, _farm: farm })
    }

    async fn target(&self, quota: Quota) -> Result<Target> {
        Ok(self.server.app.account(quota).await?.1)
    }

    /// CPU times of the server and of sqld.
    fn cpu_times(&self) -> Result<[Duration; 2]> {
        let app = &self.server.app;
        let sqld = app.database.server_pid().map(procfs::cpu_time).transpose()?;
        Ok([app.process.cpu_time()?, sqld.unwrap_or_default()])
    }
}

async fn capacity(options: &Options, name: &str, kind: DatabaseKind, accounts: usize) -> Result<()> {
    let server = Measured::start(kind).await?;
    let targets = try_join_all((0..accounts).map(|_| server.target(Quota::Unlimited))).await?;
    let warm_up = Callers::start(&targets, CALLERS);
    sleep(WARM_UP).await;
    warm_up.finish().await?;
    let (before, began) = (server.cpu_times()?, Instant::now());
    let callers = Callers::start(&targets, CALLERS);
    sleep(Duration::from_secs(options.seconds)).await;
    let responses = callers.finish().await?;
    let (elapsed, after) = (began.elapsed(), server.cpu_times()?);
    let requests = count(responses.latencies.len());
    let [p50, p99] = percentiles_ms(&responses.latencies, [50, 99]);
    let [platen, sqld] =
        [0, 1].map(|index| milliseconds(after[index].saturating_sub(before[index])) / requests);
    let others = responses.failed();
    println!(
        "| {name} | {accounts} | {:.0} | {p50:.1} | {p99:.1} | {platen:.2} | {sqld:.2} | {others} |",
        requests / elapsed.as_secs_f64()
    );
    Ok(())
}

async fn turns(name: &str, kind: DatabaseKind) -> Result<()> {
    let server = Measured::start(kind).await?;
    let (target, spent) = (server.target(Quota::Unlimited).await?, server.target(Quota::Of(1)).await?);
    Responses::default().send(&spent).await;
    let alone = series(&target, REQUESTS).await;
    let clients = Callers::start(&[spent], SPENT_CLIENTS);
    sleep(WARM_UP).await;
    let beside = series(&target, REQUESTS).await;
    let clients = clients.finish().await?;
    for (case, responses, clients) in
        [("alone", alone, String::new()), ("beside them", beside, clients.to_string())]
    {
        let [p50, p95, max] = percentiles_ms(&responses.latencies, [50, 95, 100]);
        println!("| {name} | {case}: {responses} | {p50:.1} | {p95:.1} | {max:.1} | {clients} |");
    }
    Ok(())
}

async fn series(target: &Target, requests: usize) -> Responses {
    let mut responses = Responses::default();
    for _ in 0..requests {
        responses.send(target).await;
    }
    responses
}
