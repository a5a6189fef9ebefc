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
    deployment::DatabaseKind,
    loopback::ClosedPort,
    operator::{Account, Quota},
    site::{Reply, Site},
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
    checks::Checks,
    number_marker::{self, TEMPLATE_HTML},
    resources::{Resources, check_growth},
    server::{BROWSERS, Server, on_own_thread, own_farm},
};

#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// Minutes of the load
    #[arg(long, default_value_t = 20.0)]
    minutes: f64,
    /// Run the farm in a process of its own, which is killed and stopped as well
    #[arg(long)]
    farm_process: bool,
    /// A run of 9 seconds that fails only for wrong answers, records and resources, not for times
    #[arg(long)]
    short: bool,
    /// Seed of the requests and the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Deadline of a render in milliseconds.
const DEADLINE_MS: u64 = 10_000;
/// The rate of requests relative to the capacity.
const OVERLOAD: f64 = 2.0;
/// The length of a short run.
const SHORT_MINUTES: f64 = 0.15;
/// The first part of the load ends after this share of the time. What is held then may not grow afterwards.
const FIRST_PART: f64 = 3.0;
/// Factors and amounts by which the figures of a process may grow.
const GROWTH: [(f64, f64); 5] = [(1.5, 64.0), (1.5, 64.0), (1.0, 12.0), (1.0, 16.0), (1.5, 16.0)];
/// The quotas of the accounts. The last one is spent soon.
const QUOTAS: [Quota; 4] = [Quota::Unlimited, Quota::Of(1_000_000), Quota::Of(1_000_000), Quota::Of(200)];

impl Options {
    /// The number of seconds of a short or a long run.
    fn seconds(&self, short: u64, long: u64) -> Duration {
        Duration::from_secs(if self.short { short } else { long })
    }

    /// The time until browsers that were hit have been replaced, and jobs of clients that disconnected have ended.
    fn settle(&self) -> Duration {
        self.seconds(3, 15)
    }
}

/// Runs the load and checks what came of it.
pub(crate) async fn run(mut options: Options) -> Result<()> {
    let mut checks = Checks::new(&format!("chaos, seed {}", options.seed));
    if options.short {
        checks.ignore_times();
        options.minutes = SHORT_MINUTES;
    }
    Run::start(options).await?.finish(&mut checks).await?;
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

impl Run {
    async fn start(options: Options) -> Result<Self> {
        let own_farm = own_farm();
        let (mut farm, mut app_options) = (None, own_farm.clone());
        if options.farm_process {
            let url = ClosedPort::hold()?.url()?;
            let address = url.trim_start_matches("http://").parse()?;
            farm = Some(FarmProcess::start(own_farm.arguments, address).await?);
            app_options = AppOptions::with_farm(DatabaseKind::File, url);
        }
        let server = Server::start(&app_options.deadline_ms(DEADLINE_MS)).await?;
        let operator = &server.app.operator;
        let mut callers = Vec::new();
        for quota in QUOTAS {
            let account = operator.account(quota).await?;
            let template = operator.template(&account.id, "Number", TEMPLATE_HTML).await?;
            callers.push(Caller { account, template });
        }
        let hostile = operator.account(Quota::Unlimited).await?;
        let site = Site::start_with(|uri, _| reply(uri.path())).await?;
        Ok(Self { server, farm, site, callers, hostile, options, parts: 0 })
    }

    /// The process whose browsers render.
    fn farm_pid(&self) -> u32 {
        self.farm.as_ref().map_or_else(|| self.server.pid(), FarmProcess::pid)
    }

    /// Sends the load and checks what came of it.
    async fn finish(mut self, checks: &mut Checks) -> Result<()> {
        let load = self.load(self.callers.clone(), &self.hostile.key);
        // Of the capacity measurement no outcome is kept, so its callers are not those of the load.
        let capacity = self.capacity().await?;
        let rate = OVERLOAD * capacity;
        let duration = Duration::from_secs_f64(60.0 * self.options.minutes);
        let first_duration = duration.div_f64(FIRST_PART);
        let first = self.send(load, rate, first_duration).await?;
        let before = self.resources().await?;
        let second = self.send(first.load, rate, duration.saturating_sub(first_duration)).await?;
        let cpu = first.cpu + second.cpu;

        checks.figure("capacity", &format!("{capacity:.1} files/s of {BROWSERS} clients"));
        let share = 100.0 * cpu.as_secs_f64() / duration.as_secs_f64();
        checks.figure("load", &format!("{rate:.1} requests/s; the generator took {share:.0} % of a core"));
        let ledger = Ledger {
            outcomes: [first.outcomes, second.outcomes].concat(),
            faults: [first.faults, second.faults].concat(),
            duration,
        };
        ledger.check(checks, Duration::from_millis(DEADLINE_MS));
        let accounts: Vec<Account> =
            self.callers.iter().map(|it| it.account.clone()).chain([self.hostile.clone()]).collect();
        let quotas: Vec<Quota> = QUOTAS.into_iter().chain([Quota::Unlimited]).collect();
        ledger.check_records(&self.server.app, &accounts, &quotas, checks).await?;
        self.check_remains(before, checks).await
    }

    /// What the server holds, and the process whose browsers render.
    async fn resources(&self) -> Result<[Resources; 2]> {
        let farm = Resources::with_browsers(self.farm_pid()).await?;
        Ok([Resources::of(self.server.pid())?, farm])
    }

    /// Sends the load and injects faults for as long as this, and waits until nothing is in progress.
    async fn send(&mut self, mut load: Load, rate: f64, duration: Duration) -> Result<Sent> {
        self.parts += 1;
        let until = Instant::now() + duration;
        let injector = Injector {
            random: StdRng::seed_from_u64(self.options.seed.wrapping_add(self.parts)),
            interval: self.options.seconds(1, 3),
            server_pid: self.server.pid(),
            farm: self.farm.take(),
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
        let duration = self.options.seconds(3, 15);
        let (capacity, _) = on_own_thread(async move || {
            // Opens the browsers' pages.
            measuring.capacity(BROWSERS, Duration::from_secs(3)).await;
            Ok(measuring.capacity(BROWSERS, duration).await)
        })
        .await?;
        Ok(capacity)
    }

    /// Checks that the server and the farm hold what they held before, and nothing after their end.
    async fn check_remains(self, before: [Resources; 2], checks: &mut Checks) -> Result<()> {
        let after = self.resources().await?;
        if !self.options.short {
            let held = |of: usize| (before[of].figures(), after[of].figures());
            check_growth(checks, "server", held(0), GROWTH);
            if self.farm.is_some() {
                check_growth(checks, "farm", held(1), GROWTH);
            }
        }
        if self.farm.is_none() {
            // The metrics of a farm that was killed have begun again.
            let ran = self.server.app.metric("platen_farm_wait_seconds_count").await?;
            let charged =
                self.server.app.execute("SELECT sum(attempts) FROM usage").await?.unwrap_or_default();
            let holds = u64::try_from(charged)? <= ran;
            let measured = format!("{charged} of {ran}");
            checks.check("attempts charged", "≤ jobs that had a browser", &measured, holds);
        }
        let panics = self.server.app.process.log().matches("panicked").count();
        checks.check("panics in the log", "0", &panics.to_string(), panics == 0);
        // The site is stopped last.
        checks.nothing_left("SIGTERM", &self.server.stop().await?);
        if let Some(farm) = self.farm {
            checks.nothing_left("SIGTERM of the farm", &farm.stop().await?);
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
