//! A mixed load at twice the capacity while processes are killed and stopped, clients disconnect and requests are bad.
//!
//! Invariant: every file is decoded and compared with its request. A failed render is attributed to a fault only if
//! the fault hit while the render was in progress, and to each fault at most as many as there were jobs on what it hit.

mod faults;
mod ledger;
mod plan;
mod senders;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_harness::{
    app::Options as AppOptions,
    busy_loops::BusyLoops,
    deployment::DatabaseKind,
    loopback::ClosedPort,
    operator::{Account, Quota},
    site::{self, Reply, Site},
};
use rand::{SeedableRng as _, rngs::StdRng};
use tokio::time::sleep;

use self::{
    faults::{FarmProcess, Fault, Injector},
    ledger::Ledger,
    plan::{Caller, Planner},
    senders::{Load, Outcome},
};
use crate::{
    number_marker::{self, TEMPLATE_HTML},
    overload::{Server, checks::Checks, on_own_thread, resources::Resources},
};

#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// Minutes of the load
    #[arg(long, default_value_t = 20.0)]
    minutes: f64,
    /// Run the load twice, the second time beside this many busy loops, and compare the goodput
    #[arg(long, default_value_t = 0)]
    busy_loops: usize,
    /// Run the farm in a process of its own, which is killed and stopped as well
    #[arg(long)]
    farm_process: bool,
    /// Browsers of the farm
    #[arg(long, default_value_t = 4)]
    browsers: usize,
    /// Seconds between faults; 0 injects none
    #[arg(long, default_value_t = 3)]
    fault_seconds: u64,
    /// A run of 9 seconds that fails only for wrong answers, records and resources, not for times
    #[arg(long)]
    short: bool,
    /// The rate of requests relative to the capacity
    #[arg(long, default_value_t = 2.0)]
    overload: f64,
    /// Seed of the requests and the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Deadline of a render in milliseconds.
const DEADLINE_MS: u64 = 10_000;
/// Of a short run.
const SHORT_MINUTES: f64 = 0.15;
/// The first part of the load ends after this share of the time. What is held then may not grow afterwards.
const FIRST_PART: f64 = 3.0;
/// The quotas of the accounts. The last one is spent soon.
const QUOTAS: [Quota; 4] = [Quota::Unlimited, Quota::Of(1_000_000), Quota::Of(1_000_000), Quota::Of(200)];

impl Options {
    fn capacity_duration(&self) -> Duration {
        Duration::from_secs(if self.short { 3 } else { 15 })
    }

    /// Until browsers that were hit have been replaced, and jobs of clients that disconnected have ended.
    fn settle(&self) -> Duration {
        Duration::from_secs(if self.short { 3 } else { 15 })
    }
}

/// Runs the load, with busy loops a second time.
pub(crate) async fn run(mut options: Options) -> Result<()> {
    let mut checks = Checks::new(&format!("chaos, seed {}", options.seed));
    if options.short {
        checks.ignore_times();
        options.minutes = SHORT_MINUTES;
        options.fault_seconds = 1;
    }
    let plain = Run::start(&options).await?.finish(None, &mut checks, "").await?;
    if options.busy_loops > 0 {
        let run = Run::start(&options).await?;
        let cores = std::thread::available_parallelism()?.get();
        let loops = BusyLoops::start(options.busy_loops.div_ceil(cores))?;
        let prefix = format!("{} busy loops: ", options.busy_loops);
        let busy = run.finish(Some(plain.rate), &mut checks, &prefix).await?;
        drop(loops);
        checks.at_least_percent("goodput with busy loops", 100.0 * busy.goodput / plain.goodput, 60.0);
    }
    checks.finish()
}

/// A server and the accounts of its callers.
struct Run {
    server: Server,
    farm: Option<FarmProcess>,
    site: Site,
    callers: Vec<Caller>,
    hostile: Account,
    options: Options,
    parts: u64,
}

/// A part of the load that was sent.
struct Sent {
    load: Load,
    outcomes: Vec<Outcome>,
    /// CPU time of the generator.
    cpu: Duration,
    faults: Vec<Fault>,
}

/// What a run has measured.
struct Measured {
    /// Requests per second that were sent.
    rate: f64,
    /// Right answers per second.
    goodput: f64,
}

impl Run {
    async fn start(options: &Options) -> Result<Self> {
        let farm_arguments = [
            "--browsers".to_owned(),
            options.browsers.to_string(),
            "--resolve".to_owned(),
            format!("{}=127.0.0.1", site::HOST),
        ];
        let (mut farm, mut app_options) = (
            None,
            AppOptions { arguments: farm_arguments.to_vec(), ..AppOptions::own_farm(DatabaseKind::File) },
        );
        if options.farm_process {
            let url = ClosedPort::hold()?.url()?;
            let address = url.trim_start_matches("http://").parse()?;
            farm = Some(FarmProcess::start(farm_arguments.to_vec(), address).await?);
            app_options = AppOptions::with_farm(DatabaseKind::File, url);
        }
        let server = Server::start_with(&app_options.deadline_ms(DEADLINE_MS)).await?;
        let operator = &server.app.operator;
        let mut callers = Vec::new();
        for quota in QUOTAS {
            let account = operator.account(quota).await?;
            let template = operator.template(&account.id, "Number", TEMPLATE_HTML).await?;
            callers.push(Caller { account, template });
        }
        let hostile = operator.account(Quota::Unlimited).await?;
        let site = Site::start_with(|uri, _| reply(uri.path())).await?;
        Ok(Self { server, farm, site, callers, hostile, options: options.clone(), parts: 0 })
    }

    /// The process whose browsers render.
    fn farm_pid(&self) -> u32 {
        self.farm.as_ref().map_or_else(|| self.server.pid(), FarmProcess::pid)
    }

    /// Sends the load, at this rate or at twice the measured capacity, and checks what came of it.
    async fn finish(mut self, rate: Option<f64>, checks: &mut Checks, prefix: &str) -> Result<Measured> {
        let load = self.load(self.callers.clone(), &self.hostile.key);
        // Of the capacity measurement no outcome is kept, so its callers are not those of the load.
        let measured = self.capacity().await?;
        let rate = rate.unwrap_or(self.options.overload * measured);
        let duration = Duration::from_secs_f64(60.0 * self.options.minutes);
        let first_duration = duration.div_f64(FIRST_PART);
        let first = self.send(load, rate, first_duration).await?;
        let (before, server_before) = (
            Resources::with_browsers(self.farm_pid(), self.options.browsers).await?,
            Resources::of(self.server.pid())?,
        );
        let second = self.send(first.load, rate, duration.saturating_sub(first_duration)).await?;
        let cpu = first.cpu + second.cpu;

        let row = |name: &str| format!("{prefix}{name}");
        checks
            .figure(&row("capacity"), &format!("{measured:.1} files/s of {} clients", self.options.browsers));
        let share = 100.0 * cpu.as_secs_f64() / duration.as_secs_f64();
        checks.figure(
            &row("load"),
            &format!("{rate:.1} requests/s; the generator took {share:.0} % of a core"),
        );
        let ledger = Ledger {
            outcomes: [first.outcomes, second.outcomes].concat(),
            faults: [first.faults, second.faults].concat(),
            duration,
        };
        let goodput = ledger.check(checks, prefix, Duration::from_millis(DEADLINE_MS));
        let accounts: Vec<Account> =
            self.callers.iter().map(|it| it.account.clone()).chain([self.hostile.clone()]).collect();
        let quotas: Vec<Quota> = QUOTAS.into_iter().chain([Quota::Unlimited]).collect();
        ledger.check_records(&self.server.app, &accounts, &quotas, checks, prefix).await?;
        self.check_remains(&server_before, &before, checks, prefix).await?;
        Ok(Measured { rate, goodput })
    }

    /// Sends the load and injects faults for as long as this, and waits until nothing is in progress.
    async fn send(&mut self, mut load: Load, rate: f64, duration: Duration) -> Result<Sent> {
        self.parts += 1;
        let until = Instant::now() + duration;
        let interval =
            Some(self.options.fault_seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let injector = Injector {
            random: StdRng::seed_from_u64(self.options.seed.wrapping_add(self.parts)),
            interval: interval.unwrap_or(Duration::MAX / 2),
            server_pid: self.server.pid(),
            farm: self.farm.take(),
            browsers: self.options.browsers,
            hostile: Arc::clone(&load.hostile),
            cut: Arc::clone(&load.cut),
        };
        let sending = on_own_thread(async move || {
            let outcomes = load.run(rate, until).await?;
            Ok((load, outcomes))
        });
        let (sent, injected) = tokio::join!(sending, injector.run(until));
        let (((load, outcomes), cpu), (faults, farm)) = (sent?, injected?);
        self.farm = farm;
        sleep(self.options.settle()).await;
        Ok(Sent { load, outcomes, cpu, faults })
    }

    fn load(&self, callers: Vec<Caller>, hostile_key: &str) -> Load {
        Load {
            address: self.server.address,
            planner: Planner::new(callers, &self.site),
            random: StdRng::seed_from_u64(self.options.seed),
            hostile_key: hostile_key.to_owned(),
            hostile: Arc::default(),
            cut: Arc::default(),
        }
    }

    /// Measures the capacity with accounts of its own.
    async fn capacity(&self) -> Result<f64> {
        let account = self.server.app.operator.account(Quota::Unlimited).await?;
        let template = self.server.app.operator.template(&account.id, "Number", TEMPLATE_HTML).await?;
        let mut measuring = self.load(vec![Caller { account, template }], "");
        let (clients, duration) = (self.options.browsers, self.options.capacity_duration());
        let (capacity, _) = on_own_thread(async move || {
            // Opens the browsers' pages.
            measuring.capacity(clients, Duration::from_secs(3)).await;
            Ok(measuring.capacity(clients, duration).await)
        })
        .await?;
        Ok(capacity)
    }

    /// Checks that the server and the farm hold what they held before, and nothing after their end.
    async fn check_remains(
        self,
        server_before: &Resources,
        before: &Resources,
        checks: &mut Checks,
        prefix: &str,
    ) -> Result<()> {
        let row = |name: &str| format!("{prefix}{name}");
        let (after, server_after) = (
            Resources::with_browsers(self.farm_pid(), self.options.browsers).await?,
            Resources::of(self.server.pid())?,
        );
        if !self.options.short {
            ledger::compare(checks, &row("server"), server_before, &server_after);
            if self.farm.is_some() {
                ledger::compare(checks, &row("farm"), before, &after);
            }
        }
        if self.farm.is_none() {
            // The metrics of a farm that was killed have begun again.
            let ran = self.server.app.metric("platen_farm_wait_seconds_count").await?;
            let charged =
                self.server.app.execute("SELECT sum(attempts) FROM usage").await?.unwrap_or_default();
            let holds = u64::try_from(charged)? <= ran;
            checks.check(
                &row("attempts charged"),
                "≤ jobs that had a browser",
                &format!("{charged} of {ran}"),
                holds,
            );
        }
        let panics = self.server.app.process.log().matches("panicked").count();
        checks.check(&row("panics in the log"), "0", &panics.to_string(), panics == 0);
        // The site is stopped last.
        let stopped = self.server.stop().await?;
        checks.check(&row("SIGTERM"), "nothing left", &stopped.text(), stopped.left.is_empty());
        if let Some(farm) = self.farm {
            let stopped = farm.stop().await?;
            checks.check(
                &row("SIGTERM of the farm"),
                "nothing left",
                &stopped.text(),
                stopped.left.is_empty(),
            );
        }
        Ok(())
    }
}

/// The replies of the site.
fn reply(path: &str) -> Reply {
    if let Some(number) = path.strip_prefix("/page/").and_then(|number| number.parse().ok()) {
        return Reply::page(number_marker::page(number));
    }
    match path {
        "/download" => Reply::of("application/zip", "PK").with_header("content-disposition", "attachment"),
        "/redirect" => Reply::redirect("/redirect"),
        _ => Reply::page("").with_status(http::StatusCode::NOT_FOUND),
    }
}
