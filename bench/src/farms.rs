//! Several farms behind HAProxy and `platen up`: how throughput grows with them, and how many jobs meet a warm page.
//!
//! Invariant: the farms are stand-ins in this process with a fixed service time, so that a farm that is added brings the
//! same capacity each time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions, TestApp},
    client::Target,
    database::DatabaseKind,
    farm::{Size, StandInFarm},
    haproxy::HaProxy,
    operator::Quota,
    settings::Settings,
};
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use crate::statistics::{count, percentile_ms};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Jobs that a farm serves at once
    #[arg(long, default_value_t = 4)]
    slots: usize,
    /// Milliseconds that a job holds its slot
    #[arg(long, default_value_t = 100)]
    service_ms: u64,
    /// Accounts for each farm
    #[arg(long, default_value_t = 12)]
    accounts: usize,
    /// Accounts whose pages a farm keeps
    #[arg(long, default_value_t = 16)]
    pages: usize,
}

/// Runs every case and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    println!("| farms | callers | jobs/s | of linear | warm page | p50 ms | p95 ms |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut of_one = [0.0; 2];
    for farms in [1, 2, 4, 8] {
        // Callers in percent of the slots: as many as can be served, and twice as many.
        for (index, percent) in [100, 200].into_iter().enumerate() {
            let rate = scaling(&options, farms, percent).await?;
            if farms == 1 {
                of_one[index] = rate.jobs;
            }
            let linear = rate.jobs / of_one[index] / count(farms) * 100.0;
            println!("| {farms} | {} | {:.1} | {linear:.1} % | {}", rate.callers, rate.jobs, rate.rest);
        }
    }
    Ok(())
}

/// A server with farms.
struct Server {
    app: TestApp,
    farms: Vec<StandInFarm>,
    targets: Vec<Target>,
    _proxy: HaProxy,
    _directory: tempfile::TempDir,
}

impl Server {
    async fn start(options: &Options, count: usize) -> Result<Self> {
        let service_time = Duration::from_millis(options.service_ms);
        let size = Size { slots: options.slots, queue: 64, pages: options.pages, service_time };
        let ledger = Arc::default();
        let mut farms = Vec::new();
        for _ in 0..count {
            farms.push(StandInFarm::start_with(FARM_TOKEN, None, size, &ledger).await?);
        }
        let addresses: Vec<_> = farms.iter().map(StandInFarm::address).collect();
        let proxy = HaProxy::start(&addresses).await?;
        let directory = tempfile::tempdir()?;
        let app_options = AppOptions::with_farm(DatabaseKind::File, proxy.url());
        let http = reqwest::Client::new();
        let app = TestApp::start(&app_options, &Settings::from_env()?, &http, directory.path()).await?;
        let mut targets = Vec::new();
        for _ in 0..options.accounts * count {
            targets.push(app.target(&app.operator.account(Quota::Unlimited).await?));
        }
        Ok(Self { app, farms, targets, _proxy: proxy, _directory: directory })
    }

    fn served(&self) -> (usize, usize) {
        let sum = |of: fn(&StandInFarm) -> usize| self.farms.iter().map(of).sum();
        (sum(StandInFarm::served), sum(StandInFarm::served_warm))
    }
}

/// Callers that send one request after the other, each with the accounts in turn.
struct Callers {
    stop: Arc<AtomicBool>,
    running: JoinSet<Vec<(u16, Duration)>>,
}

impl Callers {
    fn start(targets: &[Target], callers: usize) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let mut running = JoinSet::new();
        for caller in 0..callers {
            let (stop, targets) = (Arc::clone(&stop), targets.to_vec());
            running.spawn(async move {
                let mut answers = Vec::new();
                // Callers begin at different accounts and take different steps.
                let mut index = caller * targets.len() / callers;
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let answer = targets[index % targets.len()].render(&json!({ "html": "x" })).send().await;
                    answers.push((answer.map_or(0, |answer| answer.status), began.elapsed()));
                    index += 1 + caller % 7;
                }
                answers
            });
        }
        Self { stop, running }
    }

    async fn finish(self) -> Vec<(u16, Duration)> {
        self.stop.store(true, Ordering::Relaxed);
        self.running.join_all().await.concat()
    }
}

struct Rate {
    callers: usize,
    jobs: f64,
    rest: String,
}

async fn scaling(options: &Options, farms: usize, percent: usize) -> Result<Rate> {
    let server = Server::start(options, farms).await?;
    let number = farms * options.slots * percent / 100;
    let callers = Callers::start(&server.targets, number);
    sleep(Duration::from_secs(2)).await;
    let (before, began) = (server.served(), Instant::now());
    sleep(Duration::from_secs(options.seconds)).await;
    let (after, elapsed) = (server.served(), began.elapsed());
    let answers = callers.finish().await;
    let failed = answers.iter().filter(|(status, _)| *status != 200).count();
    anyhow::ensure!(failed == 0, "{failed} requests failed");
    let (jobs, warm) = (after.0 - before.0, after.1 - before.1);
    let [p50, p95] = [50, 95].map(|percent| {
        percentile_ms(answers.iter().map(|(_, latency)| latency), percent).unwrap_or(f64::NAN)
    });
    drop(server.app);
    Ok(Rate {
        callers: number,
        jobs: count(jobs) / elapsed.as_secs_f64(),
        rest: format!("{:.0} % | {p50:.0} | {p95:.0} |", count(warm) / count(jobs) * 100.0),
    })
}
