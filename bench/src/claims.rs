//! Callers that race for a quota at several edges that claim ahead, far from their database, while an edge or the database fails,
//! the month changes, or the key is disabled.
//!
//! Invariant: a stand-in farm counts the jobs, which are the files of the account. Nothing depends on how fast the machine is: waits
//! end with an event, or fail the command.

mod race;
mod system;

use std::{
    collections::BTreeSet,
    ops::RangeInclusive,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use platen_harness::{
    operator::{Account, Quota},
    wait::{self, MAX_WAIT},
};
use tempfile::TempDir;
use tokio::time::sleep;

use self::{
    race::{Race, Seen},
    system::{Clock, System},
};
use crate::checks::Checks;

#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// Callers at once, of all edges together
    #[arg(long, default_value_t = 1_000)]
    callers: usize,
    /// Milliseconds of a round trip between an edge and the database
    #[arg(long, default_value_t = 100)]
    round_trip: u64,
    /// Only this fault; can be given more than once
    #[arg(long)]
    fault: Vec<Fault>,
    /// Only this quota; can be given more than once
    #[arg(long)]
    quota: Vec<u64>,
    /// 64 callers, one quota, and the faults that a test can have on a busy machine
    #[arg(long)]
    short: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Fault {
    None,
    EdgeKilled,
    DatabaseKilled,
    DatabaseFrozen,
    KeyDisabled,
    /// Needs libfaketime
    MonthChange,
}

const FAULTS: [Fault; 6] = [
    Fault::None,
    Fault::EdgeKilled,
    Fault::DatabaseKilled,
    Fault::DatabaseFrozen,
    Fault::KeyDisabled,
    Fault::MonthChange,
];
const SHORT_FAULTS: [Fault; 2] = [Fault::EdgeKilled, Fault::DatabaseFrozen];
/// Quotas. Nothing but the number of files for each caller ends the race for the last one.
const QUOTAS: [u64; 3] = [50, 1_000, 1_000_000];
const SHORT_QUOTAS: [u64; 1] = [600];
const SHORT_CALLERS: usize = 64;
/// Files for all callers together; fewer where three times the quota is less.
const MAX_FILES: u64 = 5_000;
/// The setting of the edges.
const CLAIM_AHEAD: Duration = Duration::from_secs(3);
/// Longer than the deadline of a request.
const FROZEN: Duration = Duration::from_secs(12);
const KILLED: Duration = Duration::from_secs(3);
/// The race begins this long before the month changes.
const BEFORE_CHANGE: Duration = Duration::from_millis(1_500);
/// The time for which nothing changes when all is quiet.
const QUIET: Duration = Duration::from_secs(3);
/// How many attempts of an account an edge may hold, by `docs/operating.md`; twice as many while it claims the next ones.
const MAX_HELD: u64 = 64;

/// Runs every case and checks what came of it.
pub(crate) async fn run(mut options: Options) -> Result<()> {
    if options.short {
        options.callers = SHORT_CALLERS;
    }
    let all = if options.short { &SHORT_FAULTS[..] } else { &FAULTS[..] };
    let quotas = if options.short { &SHORT_QUOTAS[..] } else { &QUOTAS[..] };
    let is_wanted = |fault: &&Fault| options.fault.is_empty() || options.fault.contains(fault);
    let quotas = if options.quota.is_empty() { quotas.to_vec() } else { options.quota.clone() };
    let directory = TempDir::with_prefix("platen-bench-")?;
    let title = format!("claims ahead, {} callers at {} ms", options.callers, options.round_trip);
    let mut checks = Checks::new(&title);
    for fault in all.iter().filter(is_wanted) {
        for quota in &quotas {
            run_case(*fault, *quota, &options, directory.path(), &mut checks)
                .await
                .with_context(|| format!("{fault:?} with a quota of {quota}"))?;
        }
    }
    checks.finish()
}

async fn run_case(
    fault: Fault,
    quota: u64,
    options: &Options,
    directory: &Path,
    checks: &mut Checks,
) -> Result<()> {
    let clock = if fault == Fault::MonthChange { Clock::BeforeNewMonth } else { Clock::System };
    let round_trip = Duration::from_millis(options.round_trip);
    let mut system = System::start(directory, round_trip, CLAIM_AHEAD, clock).await?;
    let account = system.ledger.operator.account(Quota::Of(quota)).await?;
    if let Some(change) = system.new_month {
        let wait = change.checked_duration_since(Instant::now() + BEFORE_CHANGE);
        sleep(wait.context("the edges have started too late for the change of the month")?).await;
    }
    let files = usize::try_from(MAX_FILES.min(3 * quota))?;
    let race = Race::start(&system, &account, options.callers, files.div_ceil(options.callers));
    let injected = inject(fault, &mut system, &account, quota.min(MAX_FILES) / 4).await?;
    let seen = race.finish().await?;
    Case { fault, quota, system, account, injected, seen }.check(checks).await
}

/// Lets something fail, or disables the key, after so many jobs; from when to when that was done.
async fn inject(
    fault: Fault,
    system: &mut System,
    account: &Account,
    jobs: u64,
) -> Result<RangeInclusive<Instant>> {
    let is_under_way = || system.farm.received_in_all() as u64 >= jobs;
    wait::until("the race is under way", is_under_way).await?;
    let (began, mut done) = (Instant::now(), None);
    match fault {
        Fault::None | Fault::MonthChange => {}
        Fault::EdgeKilled => {
            let edge = &mut system.edges[0].app.process;
            edge.signal(Signal::SIGKILL)?;
            edge.ended().await?;
        }
        Fault::DatabaseKilled => {
            system.database.kill().await?;
            done = Some(Instant::now());
            sleep(KILLED).await;
            system.database.start_again().await?;
        }
        Fault::DatabaseFrozen => {
            system.database.pause(true)?;
            sleep(FROZEN).await;
            system.database.pause(false)?;
        }
        Fault::KeyDisabled => {
            _ = system.ledger.operator.run(&["key", "disable", &account.key_id]).await?;
        }
    }
    Ok(began..=done.unwrap_or_else(Instant::now))
}

/// A race that has ended.
struct Case {
    fault: Fault,
    quota: u64,
    system: System,
    account: Account,
    /// When something was killed, or the key was disabled.
    injected: RangeInclusive<Instant>,
    seen: Vec<Seen>,
}

impl Case {
    async fn check(&self, checks: &mut Checks) -> Result<()> {
        let name = |what: &str| format!("{:?}, quota {}: {what}", self.fault, self.quota);
        let files = self.seen.iter().filter(|seen| seen.status == Some(200)).count() as u64;
        self.until_quiet().await?;
        let jobs = self.system.farm.received_from(&self.account.id).len() as u64;
        let usage = self.number("coalesce(sum(attempts), 0)", "usage").await?;
        let largest = self.number("coalesce(max(attempts), 0)", "usage").await?;
        let held = "claims_ahead WHERE returned IS NULL AND granted > 1 AND";
        let lost = self.sum(&format!("SELECT coalesce(sum(granted), 0) FROM {held}")).await?;
        let ahead =
            self.sum("SELECT coalesce(sum(granted), 0) FROM claims_ahead WHERE granted > 1 AND").await?;

        let what = name(&format!("jobs; {ahead} attempts were claimed ahead, {} requests", self.seen.len()));
        checks.check(&what, "≥ files", &format!("{jobs}, {files} files"), files <= jobs);
        let what = name("attempts of a month");
        checks.check(&what, &format!("≤ {}", self.quota), &largest.to_string(), largest <= self.quota);
        let doubtful = self.doubtful() + lost;
        let limit = if doubtful == 0 { "jobs".to_owned() } else { format!("jobs to jobs + {doubtful}") };
        let is_right = (jobs..=jobs + doubtful).contains(&usage);
        checks.check(&name("attempts when all is quiet"), &limit, &format!("{usage}, {jobs} jobs"), is_right);
        let limit = if self.fault == Fault::EdgeKilled { 2 * MAX_HELD.min(self.quota / 100) } else { 0 };
        checks.check(&name("held by a killed edge"), &format!("≤ {limit}"), &lost.to_string(), lost <= limit);
        if self.quota < MAX_FILES && doubtful == 0 {
            match self.fault {
                Fault::None => {
                    checks.check(
                        &name("jobs"),
                        &self.quota.to_string(),
                        &jobs.to_string(),
                        jobs == self.quota,
                    );
                }
                // The first month may end with attempts left.
                Fault::MonthChange => {
                    let limit = format!("> {}", self.quota);
                    checks.check(&name("jobs of both months"), &limit, &jobs.to_string(), jobs > self.quota);
                }
                _ => {}
            }
        }
        if self.fault == Fault::KeyDisabled {
            let end = *self.injected.end() + CLAIM_AHEAD;
            let late = self.seen.iter().filter(|seen| seen.status == Some(200) && seen.began > end).count();
            checks.check(&name("files after the time"), "0", &late.to_string(), late == 0);
        }
        // On a busy machine a job may not end by its deadline.
        let expected: &[u16] = match self.fault {
            Fault::KeyDisabled => &[200, 401, 429, 503, 504],
            _ => &[200, 429, 503, 504],
        };
        let others: BTreeSet<_> = self.seen.iter().filter_map(|seen| seen.status).collect();
        let others: Vec<_> = others.into_iter().filter(|status| !expected.contains(status)).collect();
        checks.check(&name("other statuses"), "none", &format!("{others:?}"), others.is_empty());
        Ok(())
    }

    /// The requests whose claim may have been recorded without a job: they were in progress when what they waited for was killed,
    /// or a busy machine did not bring their job to the farm by the deadline.
    fn doubtful(&self) -> u64 {
        let was_hit =
            |seen: &Seen| seen.began <= *self.injected.end() && *self.injected.start() <= seen.ended;
        let is_doubtful = |seen: &&Seen| match (self.fault, seen.status) {
            (_, Some(504)) => true,
            (Fault::EdgeKilled, None) | (Fault::DatabaseKilled, Some(503)) => was_hit(seen),
            _ => false,
        };
        self.seen.iter().filter(is_doubtful).count() as u64
    }

    async fn sum(&self, sql: &str) -> Result<u64> {
        let sql = format!("{sql} account_id = '{}'", self.account.id);
        let sum = self.system.ledger.execute(&sql).await?.context("a sum")?;
        Ok(u64::try_from(sum)?)
    }

    async fn number(&self, expression: &str, table: &str) -> Result<u64> {
        self.sum(&format!("SELECT {expression} FROM {table} WHERE")).await
    }

    /// Waits until no edge holds attempts, and what is counted no longer changes.
    async fn until_quiet(&self) -> Result<()> {
        let held = "SELECT count(*) FROM claims_ahead WHERE returned IS NULL AND granted > 1 AND ends_at > unixepoch() AND";
        let is_returned = async || Ok(self.sum(held).await? == 0);
        wait::until_true("all claims are over", is_returned).await?;
        let began = Instant::now();
        let (mut last, mut since) = (None, Instant::now());
        while since.elapsed() < QUIET && began.elapsed() < MAX_WAIT {
            let usage = self.number("coalesce(sum(attempts), 0)", "usage").await?;
            if last != Some(usage) {
                (last, since) = (Some(usage), Instant::now());
            }
            sleep(QUIET / 10).await;
        }
        Ok(())
    }
}
