//! Several farms behind HAProxy and `platen up`: how throughput grows with them, and how many jobs meet a warm page.
//!
//! Invariant: the farms are stand-ins in this process with a fixed service time, so that a farm that is added brings the
//! same capacity each time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    client::Target,
    database::DatabaseKind,
    farm::{Size, StandInFarm},
    haproxy::HaProxy,
    operator::Quota,
};
use tokio::time::sleep;

use crate::{
    callers::Callers,
    server::{Server, WARM_UP},
    statistics::{count, percentiles_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Jobs that a farm serves at once.
const SLOTS: usize = 4;
/// The time that a job holds its slot.
const SERVICE_TIME: Duration = Duration::from_millis(100);
/// Accounts for each farm.
const ACCOUNTS: usize = 12;
/// Accounts whose pages a farm keeps.
const PAGES: usize = 16;

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
struct Measured {
    farms: Vec<StandInFarm>,
    targets: Vec<Target>,
    // Dropped before the proxy.
    _server: Server,
    _proxy: HaProxy,
}

impl Measured {
    async fn start(count: usize) -> Result<Self> {
        let size = Size { slots: SLOTS, queue: 64, pages: PAGES, service_time: SERVICE_TIME };
        let ledger = Arc::default();
        let mut farms = Vec::new();
        for _ in 0..count {
            farms.push(StandInFarm::start_with(FARM_TOKEN, None, size, &ledger).await?);
        }
        let addresses: Vec<_> = farms.iter().map(StandInFarm::address).collect();
        let proxy = HaProxy::start(&addresses).await?;
        let server = Server::start(&AppOptions::with_farm(DatabaseKind::File, proxy.url())).await?;
        let mut targets = Vec::new();
        for _ in 0..ACCOUNTS * count {
            targets.push(server.app.account(Quota::Unlimited).await?.1);
        }
        Ok(Self { farms, targets, _server: server, _proxy: proxy })
    }

    fn served(&self) -> (usize, usize) {
        let sum = |of: fn(&StandInFarm) -> usize| self.farms.iter().map(of).sum();
        (sum(StandInFarm::served), sum(StandInFarm::served_warm))
    }
}

struct Rate {
    callers: usize,
    jobs: f64,
    rest: String,
}

async fn scaling(options: &Options, farms: usize, percent: usize) -> Result<Rate> {
    let server = Measured::start(farms).await?;
    let number = farms * SLOTS * percent / 100;
    let callers = Callers::start(server.targets.iter().map(Target::minimal), number);
    sleep(WARM_UP).await;
    let (before, began) = (server.served(), Instant::now());
    sleep(Duration::from_secs(options.seconds)).await;
    let (after, elapsed) = (server.served(), began.elapsed());
    let responses = callers.finish().await?;
    ensure!(responses.failed() == 0, "not all requests succeeded: {responses}");
    let (jobs, warm) = (after.0 - before.0, after.1 - before.1);
    let [p50, p95] = percentiles_ms(&responses.latencies, [50, 95]);
    Ok(Rate {
        callers: number,
        jobs: count(jobs) / elapsed.as_secs_f64(),
        rest: format!("{:.0} % | {p50:.0} | {p95:.0} |", count(warm) / count(jobs) * 100.0),
    })
}
