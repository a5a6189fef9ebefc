//! Good requests while many slow, idle and unfinished connections are open.
//!
//! Invariant: a slow connection that the server closes is opened again during a measurement, so the number of slow
//! connections stays the same. The good requests come from 127.0.0.1, the slow ones from other loopback addresses.

mod crowd;
mod good;

use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::signal::Signal;
use platen_tests::{
    app::{FARM_TOKEN, Options as AppOptions},
    deployment::DatabaseKind,
    farm::{Behaviour, StandInFarm},
    operator::Quota,
    procfs,
};
use tokio::time::sleep;

use self::{
    crowd::{Addresses, Crowd, Kind},
    good::Good,
};
use crate::load::{
    checks::Checks,
    resources::{self, mebibytes},
    server::Server,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of good requests beside each kind of slow connections
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The share of the slow connections that is opened, in percent
    #[arg(long, default_value_t = 100)]
    percent: usize,
    /// Seconds until the server has closed slow connections of every kind
    #[arg(long, default_value_t = 150)]
    release_seconds: u64,
    /// Only the measurements whose names contain this text
    #[arg(long, default_value = "")]
    filter: String,
    /// All kinds together, for a few seconds and with few connections; fails only for wrong answers, connections and
    /// memory, not for times
    #[arg(long)]
    short: bool,
    /// Seed of the random waits
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const ALL_TOGETHER: &str = "all together";
/// Of a file that is read slowly.
const FILE_BYTES: u64 = 50 * 1024 * 1024;
/// For a server to notice that its clients have closed their connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Beyond the latency that is allowed by its ratio, because a few milliseconds are noise on a busy machine.
const NOISE_MS: f64 = 10.0;
/// Memory of the server beyond its start.
const MAX_MEMORY_MIB: f64 = 768.0;
/// Seconds and percent of a short run.
const SHORT: (u64, usize) = (3, 10);
const STOP_TIMEOUT: Duration = Duration::from_secs(45);

/// A server with a stand-in farm, and what every measurement needs.
struct Bench {
    server: Server,
    good: Good,
    crowd: Crowd,
    seconds: Duration,
    percent: usize,
    memory: u64,
}

/// Runs every kind of slow connection on its own and all together.
pub(crate) async fn run(mut options: Options) -> Result<()> {
    let mut checks = Checks::new(&format!("slow clients, seed {}", options.seed));
    if options.short {
        checks.ignore_times();
        (options.seconds, options.percent) = SHORT;
    }
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let server = Server::start_with(&AppOptions::with_farm(DatabaseKind::File, farm.url())).await?;
    let operator = &server.app.operator;
    let (account, slow) =
        (operator.account(Quota::Unlimited).await?, operator.account(Quota::Unlimited).await?);
    let reader = operator.account(Quota::Unlimited).await?;
    farm.behave(&reader.id, Behaviour::LongFile(FILE_BYTES));
    let good = Good::new(server.address, &account.key, options.seed);
    let crowd = Crowd { address: server.address, good_key: slow.key, reader_key: reader.key };
    let seconds = Duration::from_secs(options.seconds);

    good.run(Duration::from_secs(2)).await?;
    let mut bench = Bench {
        good,
        crowd,
        seconds,
        percent: options.percent,
        memory: procfs::memory(server.pid(), "VmRSS")?,
        server,
    };
    let is_measured = |kind: &&Kind| !options.short && kind.name().contains(&options.filter);
    for kind in Kind::ALL.iter().filter(is_measured) {
        for addresses in [Addresses::One, Addresses::Few] {
            bench.beside(&mut checks, &[*kind], addresses).await?;
        }
    }
    if options.short {
        bench.beside(&mut checks, Kind::ALL, Addresses::Few).await?;
        return bench.stop(checks).await;
    }
    if ALL_TOGETHER.contains(&options.filter) {
        for addresses in [Addresses::One, Addresses::Few] {
            bench.beside(&mut checks, Kind::ALL, addresses).await?;
        }
    }
    if options.filter.is_empty() {
        bench.release(&mut checks, Duration::from_secs(options.release_seconds)).await?;
        return bench.stop(checks).await;
    }
    checks.finish()
}

impl Bench {
    /// Measures good requests beside slow connections of these kinds, which are closed afterwards.
    async fn beside(&mut self, checks: &mut Checks, kinds: &[Kind], addresses: Addresses) -> Result<()> {
        let name = match kinds {
            [kind] => format!("{} × {}, {}", kind.connections(self.percent), kind.name(), addresses.name()),
            _ => format!("{ALL_TOGETHER}, {}", addresses.name()),
        };
        procfs::reset_peak_memory(self.server.pid())?;
        // Before each measurement, because the speed of a shared machine changes.
        let alone = self.good.run(self.seconds / 2).await?;
        let slow = self.crowd.open(kinds, self.percent, addresses);
        // By then the connections are open.
        sleep(Duration::from_secs(3)).await;
        let own_pid = std::process::id();
        let before = procfs::cpu_time(own_pid)?;
        let measured = self.good.run(self.seconds).await?;
        let cpu =
            procfs::cpu_time(own_pid)?.saturating_sub(before).as_secs_f64() / self.seconds.as_secs_f64();
        let descriptors = resources::descriptors(self.server.pid());
        let text = format!(
            "{}; alone {}; {} slow ones open, {descriptors} descriptors; clients and farm took {:.0} % of a core",
            measured.text(),
            alone.text(),
            slow.open(),
            100.0 * cpu
        );
        checks.check(&name, "99.9 % right", &text, measured.right_percent() >= 99.9);
        for (size, alone, p95) in [
            ("20 kB", alone.small_p95(), measured.small_p95()),
            ("1.2 MB", alone.large_p95(), measured.large_p95()),
        ] {
            let limit = (2.0 * alone).max(alone + NOISE_MS);
            checks.at_most_ms(&format!("{name}: p95 of {size}"), p95, limit);
        }
        let peak = mebibytes(procfs::memory(self.server.pid(), "VmHWM")?.saturating_sub(self.memory));
        checks.at_most(&format!("{name}: peak memory beyond the start"), peak, MAX_MEMORY_MIB, " MiB");
        drop(slow);
        self.until_closed(checks, &name).await;
        Ok(())
    }

    /// Waits for the server to close the descriptors of connections that their clients have closed.
    async fn until_closed(&self, checks: &mut Checks, name: &str) {
        let started = Instant::now();
        let mut left = usize::MAX;
        while left > 0 && started.elapsed() < CLOSE_TIMEOUT {
            sleep(Duration::from_millis(100)).await;
            left = resources::connections(self.server.pid(), self.server.address);
        }
        let descriptors = resources::descriptors(self.server.pid());
        let text =
            format!("{left} after {:.1} s; {descriptors} descriptors", started.elapsed().as_secs_f64());
        let limit = format!("no connection after {} s", CLOSE_TIMEOUT.as_secs());
        checks.check(&format!("{name}: closed by the clients"), &limit, &text, left == 0);
    }

    /// Waits for the server to close slow connections of every kind, which their clients keep open.
    async fn release(&self, checks: &mut Checks, limit: Duration) -> Result<()> {
        for kind in Kind::ALL {
            let slow = self.crowd.open(&[*kind], self.percent.min(10), Addresses::Few);
            sleep(Duration::from_secs(3)).await;
            slow.stop_reconnecting();
            let started = Instant::now();
            while slow.open() > 0 && started.elapsed() < limit {
                sleep(Duration::from_millis(200)).await;
            }
            let text = format!("{} open after {:.0} s", slow.open(), started.elapsed().as_secs_f64() + 3.0);
            let limit = format!("none open after {} s", limit.as_secs());
            checks.check(&format!("{}: closed by the server", kind.name()), &limit, &text, slow.open() == 0);
        }
        self.until_closed(checks, "after all").await;
        let grown = procfs::memory(self.server.pid(), "VmRSS")?.saturating_sub(self.memory);
        checks.figure("after all: memory beyond the start", &format!("{:.0} MiB", mebibytes(grown)));
        Ok(())
    }

    /// Stops the server while slow connections of every kind are open.
    async fn stop(self, mut checks: Checks) -> Result<()> {
        let _slow = self.crowd.open(Kind::ALL, self.percent.min(10), Addresses::Few);
        sleep(Duration::from_secs(3)).await;
        let Server { mut app, .. } = self.server;
        app.process.signal(Signal::SIGTERM)?;
        let started = Instant::now();
        let status = app.process.ended().await?;
        let text = format!("{status} after {:.1} s", started.elapsed().as_secs_f64());
        let is_in_time = started.elapsed() <= STOP_TIMEOUT && status.success();
        checks.check(
            "SIGTERM beside all",
            &format!("success within {} s", STOP_TIMEOUT.as_secs()),
            &text,
            is_in_time,
        );
        checks.finish()
    }
}
