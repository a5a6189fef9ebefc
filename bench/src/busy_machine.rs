//! `platen up` at twice its capacity, alone on the machine and beside endless loops.
//!
//! Invariant: both parts send the same number of requests at the same rate, twice the rate that callers who wait for
//! their files reach without loops. Attempts are compared with the answers that count.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::future::join_all;
use platen_tests::{
    app::{Options as AppOptions, TestApp},
    busy_loops::BusyLoops,
    client::Target,
    deployment::{DatabaseKind, Deployment, Platform},
    operator::{Account, Quota},
    settings::Settings,
    suite::{Stage, Suite},
};
use serde_json::json;
use tokio::time::{sleep, sleep_until};

use crate::statistics::{count, percentile_ms};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each part
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Endless loops for each core in the second part
    #[arg(long, default_value_t = 3)]
    loops: usize,
    /// Deadline of a request in milliseconds
    #[arg(long, default_value_t = 10_000)]
    deadline_ms: u64,
}

const PAGE: &str = "<!doctype html><style>body { font: 14px sans-serif } td { border: 1px solid }</style>\
    <h1>Invoice</h1><table id=t></table><script>for (let i = 0; i < 60; i++) \
    t.insertRow().insertCell().textContent = 'Item ' + i</script>";
/// More than the server has slots.
const CALLERS: u32 = 16;
const WARM_UP: Duration = Duration::from_secs(5);
/// Later than a deadline: an answer that a caller may not get.
const DEADLINE_TOLERANCE: Duration = Duration::from_secs(1);
/// Statuses that count against the quota.
const COUNTED: [u16; 4] = [200, 422, 502, 504];

/// Status and latency of an answer; status 0 is none.
type Answer = (u16, Duration);

struct Server {
    app: TestApp,
    account: Account,
    target: Target,
}

impl Server {
    async fn start(stage: &Stage, deadline_ms: u64) -> Result<Self> {
        let mut options = AppOptions::own_farm(stage.deployment).deadline_ms(deadline_ms);
        // As many browsers as by default.
        options.arguments.clear();
        let app = stage.start(&options).await?;
        let account = app.operator.account(Quota::Unlimited).await?;
        let target = app.target(&account);
        Ok(Self { app, account, target })
    }

    async fn render(&self) -> Answer {
        let began = Instant::now();
        let body = json!({ "html": PAGE, "width": 400, "height": 300 });
        let answer = self.target.render(&body).send().await;
        (answer.map_or(0, |answer| answer.status), began.elapsed())
    }

    /// Files per second of callers that wait for each file.
    async fn capacity(&self) -> Result<f64> {
        let end = Instant::now() + WARM_UP;
        let callers = join_all((0..CALLERS).map(|_| async {
            let mut files = 0_usize;
            while Instant::now() < end {
                files += usize::from(self.render().await.0 == 200);
            }
            files
        }));
        let files = callers.await.into_iter().sum();
        ensure!(files > 0, "no request was answered with a file");
        Ok(count(files) / WARM_UP.as_secs_f64())
    }

    /// Sends requests at this rate.
    async fn load(&self, rate: f64, seconds: u32) -> Part {
        let (began, before) = (Instant::now(), self.app.operator.attempts(&self.account.id).await);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let requests = (rate * f64::from(seconds)) as u32;
        let answers = join_all((0..requests).map(|number| async move {
            sleep_until((began + Duration::from_secs_f64(f64::from(number) / rate)).into()).await;
            self.render().await
        }));
        let answers = answers.await;
        let elapsed = began.elapsed();
        // Refunds are written after the responses.
        let counted = answers.iter().filter(|(status, _)| COUNTED.contains(status)).count() as u64;
        let mut uncounted = None;
        for _ in 0..60 {
            let after = self.app.operator.attempts(&self.account.id).await;
            uncounted = before.as_ref().ok().zip(after.ok()).map(|(before, after)| after - before);
            uncounted = uncounted.map(|attempts| attempts.saturating_sub(counted));
            if uncounted == Some(0) {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        Part { answers, elapsed, uncounted }
    }
}

struct Part {
    answers: Vec<Answer>,
    elapsed: Duration,
    /// Attempts that are counted although no answer counts.
    uncounted: Option<u64>,
}

impl Part {
    fn latencies(&self, status: u16) -> Vec<Duration> {
        let with_status = self.answers.iter().filter(|answer| answer.0 == status);
        with_status.map(|answer| answer.1).collect()
    }

    /// Files per second.
    fn goodput(&self) -> f64 {
        count(self.latencies(200).len()) / self.elapsed.as_secs_f64()
    }

    fn print(&self, name: &str, deadline: Duration) {
        let mut by_status = BTreeMap::<u16, usize>::new();
        self.answers.iter().for_each(|(status, _)| *by_status.entry(*status).or_default() += 1);
        let statuses: Vec<String> =
            by_status.iter().map(|(status, number)| format!("{number} × {status}")).collect();
        let percentile =
            |status, percent| percentile_ms(&self.latencies(status), percent).unwrap_or(f64::NAN);
        let late =
            self.answers.iter().filter(|(_, latency)| *latency > deadline + DEADLINE_TOLERANCE).count();
        let uncounted = self.uncounted.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
        println!(
            "| {name} | {} | {:.1} | {:.0} and {:.0} | {:.0} and {:.0} | {late} | {uncounted} |",
            statuses.join(", "),
            self.goodput(),
            percentile(200, 50),
            percentile(200, 99),
            percentile(503, 50),
            percentile(503, 99),
        );
    }
}

/// Runs both parts and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    let deployment = Deployment { platform: Platform::PlatenUp, database: DatabaseKind::File };
    let stage = Stage { suite: Suite::new(Settings::from_env()?)?, deployment };
    let server = Arc::new(Server::start(&stage, options.deadline_ms).await?);
    let deadline = Duration::from_millis(options.deadline_ms);
    let rate = 2.0 * server.capacity().await?;
    println!(
        "{rate:.0} requests per second\n\n| machine | answers | files/s | files p50 and p99 ms | refusals p50 and p99 ms | \
         past deadline + 1 s | counted without reason |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    let alone = server.load(rate, options.seconds).await;
    alone.print("alone", deadline);
    let loops = BusyLoops::start(options.loops)?;
    let busy = server.load(rate, options.seconds).await;
    drop(loops);
    busy.print("busy", deadline);
    println!("\nGoodput busy / alone: {:.2}", busy.goodput() / alone.goodput());
    Ok(())
}
