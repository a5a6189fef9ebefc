//! The capacity of one database: requests per second and CPU time per request of a claim and its attempt log, and the
//! latency of an account beside many clients of another one whose quota is spent.
//!
//! Invariant: a stand-in farm responds at once, so the edge and the database are all that is measured.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use futures::future::try_join_all;
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions, TestApp},
    client::Target,
    database::DatabaseKind,
    farm::StandInFarm,
    operator::{Account, Quota},
    procfs,
    settings::Settings,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::statistics::{count, milliseconds, percentile_ms};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Callers, each of which sends one request after the other
    #[arg(long, default_value_t = 32)]
    callers: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Clients of the account whose quota is spent
    #[arg(long, default_value_t = 300)]
    spent_clients: usize,
    /// Requests of the account beside them
    #[arg(long, default_value_t = 100)]
    requests: usize,
}

const DATABASES: [(&str, DatabaseKind); 2] = [("file", DatabaseKind::File), ("sqld", DatabaseKind::Sqld)];
/// Longer than any response of the edge takes.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Before a caller whose connection failed sends its next request.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_secs(2);

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
        "\n| database | latency of an account | p50 ms | p95 ms | max ms | responses to {} clients of a spent account |\n\
         | --- | --- | --- | --- | --- | --- |",
        options.spent_clients
    );
    for (name, kind) in DATABASES {
        turns(&options, name, kind).await?;
    }
    Ok(())
}

struct Server {
    app: TestApp,
    _farm: StandInFarm,
    _directory: tempfile::TempDir,
}

impl Server {
    async fn start(kind: DatabaseKind) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let options = AppOptions::with_farm(kind, farm.url());
        let http = reqwest::Client::builder().no_proxy().build()?;
        let app = TestApp::start(&options, &Settings::from_env()?, &http, directory.path()).await?;
        Ok(Self { app, _farm: farm, _directory: directory })
    }

    async fn target(&self, quota: Quota) -> Result<Target> {
        let account: Account = self.app.operator.account(quota).await?;
        Ok(self.app.target(&account))
    }

    /// CPU times of the server and of sqld.
    fn cpu_times(&self) -> Result<[Duration; 2]> {
        let sqld = self.app.database.server_pid().map(procfs::cpu_time).transpose()?;
        Ok([self.app.process.cpu_time()?, sqld.unwrap_or_default()])
    }
}

async fn capacity(options: &Options, name: &str, kind: DatabaseKind, accounts: usize) -> Result<()> {
    let server = Server::start(kind).await?;
    let targets = try_join_all((0..accounts).map(|_| server.target(Quota::Unlimited))).await?;
    let warm_up = Callers::start(&targets, options.callers);
    sleep(WARM_UP).await;
    warm_up.finish().await?;
    let (before, began) = (server.cpu_times()?, Instant::now());
    let callers = Callers::start(&targets, options.callers);
    sleep(Duration::from_secs(options.seconds)).await;
    let responses = callers.finish().await?;
    let (elapsed, after) = (began.elapsed(), server.cpu_times()?);
    let requests = count(responses.latencies.len());
    let [p50, p99] = percentiles(&responses, [50, 99]);
    let [platen, sqld] =
        [0, 1].map(|index| milliseconds(after[index].saturating_sub(before[index])) / requests);
    let others = responses.requests() - responses.of(&[200]);
    println!(
        "| {name} | {accounts} | {:.0} | {p50:.1} | {p99:.1} | {platen:.2} | {sqld:.2} | {others} |",
        requests / elapsed.as_secs_f64()
    );
    Ok(())
}

async fn turns(options: &Options, name: &str, kind: DatabaseKind) -> Result<()> {
    let server = Server::start(kind).await?;
    let (target, spent) = (server.target(Quota::Unlimited).await?, server.target(Quota::Of(1)).await?);
    Responses::default().send(&spent).await;
    let alone = series(&target, options.requests).await;
    let clients = Callers::start(&[spent], options.spent_clients);
    sleep(WARM_UP).await;
    let beside = series(&target, options.requests).await;
    let clients = clients.finish().await?;
    for (case, responses, clients) in
        [("alone", alone, String::new()), ("beside them", beside, clients.to_string())]
    {
        let [p50, p95, max] = percentiles(&responses, [50, 95, 100]);
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

fn percentiles<const N: usize>(responses: &Responses, percents: [usize; N]) -> [f64; N] {
    percents.map(|percent| percentile_ms(&responses.latencies, percent).unwrap_or(f64::NAN))
}

/// The responses to a series of requests.
#[derive(Default)]
struct Responses {
    by_status: BTreeMap<u16, u64>,
    /// Requests without a response.
    none: u64,
    /// Of each response.
    latencies: Vec<Duration>,
}

impl Responses {
    fn of(&self, statuses: &[u16]) -> u64 {
        statuses.iter().filter_map(|status| self.by_status.get(status)).sum()
    }

    fn requests(&self) -> u64 {
        self.by_status.values().sum::<u64>() + self.none
    }

    /// Sends one request.
    async fn send(&mut self, target: &Target) {
        let began = Instant::now();
        let answer = timeout(RESPONSE_TIMEOUT, target.render(&json!({ "html": "x" })).send()).await;
        let Ok(Ok(answer)) = answer else {
            self.none += 1;
            return sleep(RECONNECT_INTERVAL).await;
        };
        self.latencies.push(began.elapsed());
        *self.by_status.entry(answer.status).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        for (status, number) in other.by_status {
            *self.by_status.entry(status).or_default() += number;
        }
        self.none += other.none;
        self.latencies.extend(other.latencies);
    }
}

impl fmt::Display for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses = self.by_status.iter().map(|(status, number)| format!("{number} × {status}"));
        let none = (self.none > 0).then(|| format!("{} without a response", self.none));
        f.write_str(&statuses.chain(none).collect::<Vec<_>>().join(", "))
    }
}

/// Callers that send requests until they are stopped.
struct Callers {
    stop: Arc<AtomicBool>,
    callers: JoinSet<Responses>,
}

impl Callers {
    /// The targets are used in turn.
    fn start(targets: &[Target], callers: usize) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let run = |caller: usize| {
            let (stop, targets) = (Arc::clone(&stop), targets.to_vec());
            async move {
                let (mut responses, mut number) = (Responses::default(), caller);
                while !stop.load(Ordering::Relaxed) {
                    responses.send(&targets[number % targets.len()]).await;
                    number += 1;
                }
                responses
            }
        };
        let callers = (0..callers).map(run).collect();
        Self { stop, callers }
    }

    async fn finish(mut self) -> Result<Responses> {
        self.stop.store(true, Ordering::Relaxed);
        let mut responses = Responses::default();
        while let Some(caller) = self.callers.join_next().await {
            responses.add(caller?);
        }
        Ok(responses)
    }
}
