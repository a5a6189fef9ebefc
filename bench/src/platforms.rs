//! `platen up` beside Spin, on a libSQL server: latency, races for a quota, many callers, faults of the database and the
//! farm, large files and slow readers.
//!
//! Invariant: both platforms get the same requests. After each case the recorded attempts and their rows are compared
//! with the responses.

mod outcome;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::future::{join_all, try_join_all};
use platen_tests::{
    app::{FARM_TOKEN, Options as AppOptions, TestApp},
    client::{RENDER, Target},
    deployment::{DatabaseKind, Deployment, Platform},
    farm::{Behaviour, StandInFarm},
    long_file::pattern_byte,
    operator::{Account, Quota},
    procfs,
    settings::Settings,
    suite::{Stage, Suite},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::outcome::Outcome;
use crate::statistics::percentile_ms;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the cases whose names contain this text
    #[arg(default_value = "")]
    filter: String,
    /// The database: file, sqld or sqld-jwt
    #[arg(long, default_value = "sqld")]
    database: String,
    /// Renders and refusals of each platform in the latency case
    #[arg(long, default_value_t = 200)]
    requests: usize,
}

const CASES: &[&str] = &[
    "latency",
    "quota race",
    "500 callers",
    "database killed for 3 s",
    "database stopped for 5 s",
    "database stopped for 15 s",
    "slow database",
    "farm killed for 3 s",
    "48 MB files",
    "slow readers",
];
/// In the cases in which something fails.
const CALLERS: usize = 20;
const CALL_DURATION: Duration = Duration::from_secs(10);
const LARGE_BYTES: u64 = 48_000_000;

/// Runs every case on both platforms and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    let database =
        Deployment::parse(&options.database).context("--database must be file, sqld or sqld-jwt")?;
    let suite = Suite::new(Settings::from_env()?)?;
    ensure!(suite.settings().spin.is_some(), "set PLATEN_SPIN to the path of Spin's binary");
    let on = |platform| Stage {
        suite: Arc::clone(&suite),
        deployment: Deployment { platform, database: database.database },
    };
    let (platen_up, spin) = (on(Platform::PlatenUp), on(Platform::Spin));
    println!("| case, on {} | `platen up` | Spin |\n| --- | --- | --- |", options.database);
    for case in CASES.iter().copied().filter(|case| case.contains(&options.filter)) {
        if case == "latency" {
            latency(&platen_up, &spin, options.requests).await?;
            continue;
        }
        let cells = [measure(case, &platen_up).await?, measure(case, &spin).await?];
        println!("| {case} | {} | {} |", cells[0], cells[1]);
    }
    Ok(())
}

/// A server with a stand-in farm.
struct Server {
    app: TestApp,
    farm: StandInFarm,
    account: Account,
    target: Target,
}

impl Server {
    async fn start(stage: &Stage, quota: Quota) -> Result<Self> {
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let app = stage.start(&AppOptions::with_farm(stage.deployment, farm.url())).await?;
        let account = app.operator.account(quota).await?;
        let target = app.target(&account);
        Ok(Self { app, farm, account, target })
    }

    /// So many requests at once.
    async fn burst(&self, requests: usize) -> Outcome {
        Outcome::new(join_all((0..requests).map(|_| render(&self.target))).await)
    }
}

/// The status and the latency.
async fn render(target: &Target) -> (String, Duration) {
    let began = Instant::now();
    let answer = target.render(&json!({ "html": "x" })).send().await;
    (answer.map_or_else(|_| "none".to_owned(), |answer| answer.status.to_string()), began.elapsed())
}

async fn measure(case: &str, stage: &Stage) -> Result<String> {
    if stage.deployment.database == DatabaseKind::File && case.contains("database") {
        return Ok("not on a file".to_owned());
    }
    let quota = if case == "quota race" { Quota::Of(100) } else { Quota::Unlimited };
    let mut server = Server::start(stage, quota).await?;
    let outcome = match case {
        "quota race" => server.burst(400).await,
        "500 callers" => server.burst(500).await,
        "database stopped for 5 s" => database_stopped(&server, Duration::from_secs(5)).await?,
        "database stopped for 15 s" => database_stopped(&server, Duration::from_secs(15)).await?,
        "slow database" => slow_database(&server).await?,
        "database killed for 3 s" => database_killed(&mut server).await?,
        "farm killed for 3 s" => farm_killed(&mut server).await?,
        "48 MB files" => return large_files(&server).await,
        _ => return slow_readers(&server).await,
    };
    Ok(format!("{outcome}; {}", outcome.records(&server.app, &server.account).await?))
}

async fn database_stopped(server: &Server, duration: Duration) -> Result<Outcome> {
    let calls = Calls::start(server);
    sleep(Duration::from_secs(2)).await;
    server.app.database.pause(true)?;
    sleep(duration).await;
    server.app.database.pause(false)?;
    calls.finish().await
}

/// The database runs a fifth of the time.
async fn slow_database(server: &Server) -> Result<Outcome> {
    let calls = Calls::start(server);
    let until = Instant::now() + CALL_DURATION;
    while Instant::now() < until {
        server.app.database.pause(true)?;
        sleep(Duration::from_millis(40)).await;
        server.app.database.pause(false)?;
        sleep(Duration::from_millis(10)).await;
    }
    calls.finish().await
}

async fn database_killed(server: &mut Server) -> Result<Outcome> {
    let calls = Calls::start(server);
    sleep(Duration::from_secs(2)).await;
    server.app.database.kill().await?;
    sleep(Duration::from_secs(3)).await;
    server.app.database.start_again().await?;
    calls.finish().await
}

async fn farm_killed(server: &mut Server) -> Result<Outcome> {
    let calls = Calls::start(server);
    sleep(Duration::from_secs(2)).await;
    let address = server.farm.address();
    server.farm = StandInFarm::start(FARM_TOKEN).await?;
    sleep(Duration::from_secs(3)).await;
    server.farm = StandInFarm::start_at(FARM_TOKEN, address).await?;
    calls.finish().await
}

/// Callers, each of which sends one request after the other.
struct Calls(tokio::task::JoinSet<Vec<(String, Duration)>>);

impl Calls {
    fn start(server: &Server) -> Self {
        let until = Instant::now() + CALL_DURATION;
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let target = server.target.clone();
            callers.spawn(async move {
                let mut answers = Vec::new();
                while Instant::now() < until {
                    let began = Instant::now();
                    let answer = target.render(&json!({ "html": "x" })).send().await;
                    let status =
                        answer.map_or_else(|_| "none".to_owned(), |answer| answer.status.to_string());
                    answers.push((status, began.elapsed()));
                }
                answers
            });
        }
        Self(callers)
    }

    async fn finish(mut self) -> Result<Outcome> {
        let mut answers = Vec::new();
        while let Some(caller) = self.0.join_next().await {
            answers.extend(caller?);
        }
        Ok(Outcome::new(answers))
    }
}

/// Eight callers at once; every byte is checked.
async fn large_files(server: &Server) -> Result<String> {
    server.farm.behave(&server.account.id, Behaviour::LongFile(LARGE_BYTES));
    let pid = server.app.server_pid();
    let before = procfs::memory(pid, "VmRSS")?;
    procfs::reset_peak_memory(pid)?;
    let began = Instant::now();
    try_join_all((0..8).map(|_| async {
        let mut response = server.target.render(&json!({ "html": "x" })).start().await?;
        let mut received = 0;
        while let Some(piece) = response.chunk().await? {
            let is_equal = piece.iter().zip(received..).all(|(byte, offset)| *byte == pattern_byte(offset));
            ensure!(is_equal, "other bytes after {received}");
            received += piece.len() as u64;
        }
        ensure!(received == LARGE_BYTES, "{received} bytes");
        Ok(())
    }))
    .await?;
    let grown = procfs::memory(pid, "VmHWM")?.saturating_sub(before) / (1024 * 1024);
    Ok(format!("8 at once, byte for byte, {:.1} s; {grown} MiB more memory", began.elapsed().as_secs_f64()))
}

/// Readers that stop after the first bytes, and another account meanwhile.
async fn slow_readers(server: &Server) -> Result<String> {
    const READERS: usize = 50;
    server.farm.behave(&server.account.id, Behaviour::LongFile(LARGE_BYTES));
    let pid = server.app.server_pid();
    let before = procfs::memory(pid, "VmRSS")?;
    let readers = try_join_all((0..READERS).map(|_| async {
        let mut response = server.target.render(&json!({ "html": "x" })).start().await?;
        response.chunk().await?;
        anyhow::Ok(response)
    }))
    .await?;
    let other = server.app.operator.account(Quota::Unlimited).await?;
    let target = server.app.target(&other);
    let mut latencies = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        target.render(&json!({ "html": "x" })).send().await?.file("image/png")?;
        latencies.push(began.elapsed());
    }
    let grown = procfs::memory(pid, "VmRSS")?.saturating_sub(before) / (1024 * 1024);
    drop(readers);
    let p50 = percentile_ms(&latencies, 50).unwrap_or(f64::NAN);
    Ok(format!("{READERS} readers, {grown} MiB more memory; another account meanwhile p50 {p50:.1} ms"))
}

/// Requests to both platforms in turn, each with a farm of its own.
async fn latency(platen_up: &Stage, spin: &Stage, requests: usize) -> Result<()> {
    let start = async |stage: &Stage| {
        let app = stage.start(&AppOptions::own_farm(stage.deployment)).await?;
        let target = app.target(&app.operator.account(Quota::Unlimited).await?);
        anyhow::Ok((app, target))
    };
    let servers = [start(platen_up).await?, start(spin).await?];
    let small = json!({ "html": "<p>x", "width": 100, "height": 100 });
    for (name, body, status) in
        [("small render, p50 and p90", &small, 200), ("400, p50 and p90", &Value::Bool(true), 400)]
    {
        let mut latencies = [Vec::new(), Vec::new()];
        for number in 0..requests + 10 {
            for ((_, target), latencies) in servers.iter().zip(&mut latencies) {
                let began = Instant::now();
                let answer = target.post(RENDER, body.to_string()).send().await?;
                ensure!(answer.status == status, "{}", answer.summary());
                if number >= 10 {
                    latencies.push(began.elapsed());
                }
            }
        }
        let [platen_up, spin] = latencies
            .map(|latencies| [50, 90].map(|percent| percentile_ms(&latencies, percent).unwrap_or(f64::NAN)));
        println!(
            "| {name} | {:.1} and {:.1} ms | {:.1} and {:.1} ms: {:.2} times |",
            platen_up[0],
            platen_up[1],
            spin[0],
            spin[1],
            spin[0] / platen_up[0]
        );
    }
    Ok(())
}
