//! Many clients of one account, and another account with one request at a time.
//!
//! Invariant: every client runs on one thread, whose CPU time is printed, because it shares the cores of the server.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use platen_tests::{
    client::{Answer, RENDER},
    operator::{Account, Quota},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use tokio::{task::spawn_local, time::sleep};

use crate::{
    load::{
        checks::Checks,
        client::{Client, Request},
        on_own_thread,
        server::Server,
    },
    statistics::{count, percentile_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each overload
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Clients of the account that overloads the server
    #[arg(long, default_value_t = 500)]
    clients: usize,
    /// Clients of the account whose quota is spent
    #[arg(long, default_value_t = 300)]
    spent_clients: usize,
    /// Browsers of the farm
    #[arg(long, default_value_t = 4)]
    browsers: usize,
    /// Seed of the random waits
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Before a client whose connection failed connects again.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(100);
/// Between the requests of the small account.
const SMALL_INTERVAL: Duration = Duration::from_millis(50);

/// When a client that was refused sends its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    AtOnce,
    /// After the seconds of `retry-after`, and up to as many more.
    AfterRetryAfter,
}

/// The answers to the requests of several clients.
#[derive(Debug, Default)]
struct Answers {
    files: Vec<Duration>,
    refusals: Vec<Duration>,
    by_status: BTreeMap<String, usize>,
}

impl Answers {
    fn record(&mut self, answer: &Result<Answer>, latency: Duration) {
        let status = answer.as_ref().map_or_else(|_| "no answer".to_owned(), |it| it.status.to_string());
        match status.as_str() {
            "200" => self.files.push(latency),
            "503" | "429" => self.refusals.push(latency),
            _ => {}
        }
        *self.by_status.entry(status).or_default() += 1;
    }

    /// Whether every answer is a file or a refusal.
    fn are_expected(&self) -> bool {
        self.by_status.keys().all(|status| matches!(status.as_str(), "200" | "503" | "429"))
    }

    fn text(&self) -> String {
        self.by_status
            .iter()
            .map(|(status, answers)| format!("{answers} × {status}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A load: the clients of one account, and a client of another account.
#[derive(Debug, Clone)]
struct Load {
    address: SocketAddr,
    clients: usize,
    request: Request,
    small: Option<Request>,
    retry: Retry,
    duration: Duration,
    seed: u64,
}

/// What a load has measured.
#[derive(Debug)]
struct Measured {
    load: Answers,
    small: Answers,
    /// Files per second, of both accounts.
    rate: f64,
    /// CPU time of the generator per second.
    cpu: f64,
}

impl Load {
    async fn run(&self) -> Result<Measured> {
        let load = self.clone();
        let seconds = self.duration.as_secs_f64();
        let ((load, small), cpu) = on_own_thread(async move || load.send_all().await).await?;
        Ok(Measured {
            rate: count(load.files.len() + small.files.len()) / seconds,
            load,
            small,
            cpu: cpu.as_secs_f64() / seconds,
        })
    }

    async fn send_all(self) -> Result<(Answers, Answers)> {
        let until = Instant::now() + self.duration;
        let (answers, small) =
            (Rc::new(RefCell::new(Answers::default())), Rc::new(RefCell::new(Answers::default())));
        let mut tasks = Vec::new();
        for number in 0..self.clients {
            let random = StdRng::seed_from_u64(self.seed.wrapping_add(number as u64));
            let client = Client::new(self.address, Ipv4Addr::LOCALHOST);
            tasks.push(spawn_local(one_client(
                client,
                self.request.clone(),
                until,
                self.retry,
                random,
                Rc::clone(&answers),
            )));
        }
        if let Some(request) = self.small {
            let (answers, client) = (Rc::clone(&small), Client::new(self.address, Ipv4Addr::LOCALHOST));
            tasks.push(spawn_local(small_client(client, request, until, answers)));
        }
        for task in tasks {
            task.await?;
        }
        Ok((answers.take(), small.take()))
    }
}

async fn one_client(
    mut client: Client,
    request: Request,
    until: Instant,
    retry: Retry,
    mut random: StdRng,
    answers: Rc<RefCell<Answers>>,
) {
    while Instant::now() < until {
        let started = Instant::now();
        let answer = client.send(&request).await;
        answers.borrow_mut().record(&answer, started.elapsed());
        let pause = match answer {
            Err(_) => RECONNECT_INTERVAL,
            Ok(answer) if answer.status != 200 && retry == Retry::AfterRetryAfter => {
                let seconds = answer.header("retry-after").ok().and_then(|it| it.parse().ok()).unwrap_or(1.0);
                Duration::from_secs_f64(seconds * random.random_range(1.0..2.0))
            }
            Ok(_) => continue,
        };
        sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
    }
}

async fn small_client(mut client: Client, request: Request, until: Instant, answers: Rc<RefCell<Answers>>) {
    while Instant::now() < until {
        let started = Instant::now();
        let answer = client.send(&request).await;
        answers.borrow_mut().record(&answer, started.elapsed());
        sleep(SMALL_INTERVAL).await;
    }
}

fn page(account: &Account) -> Request {
    let rows = "<tr><td>Item<td>12.00".repeat(30);
    let html = format!("<!doctype html><h1>Invoice</h1><table>{rows}</table>");
    Request::post(RENDER, &account.key, json!({ "html": html, "width": 400, "height": 300 }).to_string())
}

fn percentile(latencies: &[Duration], percent: usize) -> f64 {
    percentile_ms(latencies, percent).unwrap_or(f64::NAN)
}

/// Runs every load and checks goodput, refusals and the small account.
pub(crate) async fn run(options: Options) -> Result<()> {
    let server = Server::start(vec!["--browsers".to_owned(), options.browsers.to_string()]).await?;
    let operator = &server.app.operator;
    let (large, small) =
        (operator.account(Quota::Unlimited).await?, operator.account(Quota::Unlimited).await?);
    let patient = operator.account(Quota::Unlimited).await?;
    let spent = operator.account(Quota::Of(0)).await?;
    let base = Load {
        address: server.address,
        clients: options.browsers,
        request: page(&large),
        small: None,
        retry: Retry::AtOnce,
        duration: Duration::from_secs(options.seconds.div_ceil(4)),
        seed: options.seed,
    };
    // Opens the browsers' pages.
    Load { duration: Duration::from_secs(3), ..base.clone() }.run().await?;
    let capacity = base.run().await?;
    let alone = Load { clients: 0, small: Some(page(&small)), ..base.clone() }.run().await?;
    let alone_p95 = percentile(&alone.small.files, 95);

    let mut checks = Checks::new(&format!("overload, seed {}", options.seed));
    checks.figure(
        "capacity",
        &format!("{:.1} files/s of {} clients; {}", capacity.rate, options.browsers, capacity.load.text()),
    );
    checks.figure("small account alone, p95", &format!("{alone_p95:.0} ms"));
    let full = Load {
        clients: options.clients,
        small: Some(page(&small)),
        duration: Duration::from_secs(options.seconds),
        ..base
    };
    // A connection waits for a second after a refusal.
    for (name, retry, account, min_goodput, refusals_ms) in [
        ("retry at once", Retry::AtOnce, &large, 50.0, [1_100.0, 1_500.0]),
        ("`retry-after`", Retry::AfterRetryAfter, &patient, 90.0, [50.0, 500.0]),
    ] {
        let measured = Load { retry, request: page(account), ..full.clone() }.run().await?;
        let name = format!("{} clients, {name}", options.clients);
        report(&mut checks, &name, &measured, alone_p95);
        checks.at_least_percent(
            &format!("{name}: goodput of capacity"),
            100.0 * measured.rate / capacity.rate,
            min_goodput,
        );
        for (percent, max_ms) in [50, 99].into_iter().zip(refusals_ms) {
            let latency = percentile(&measured.load.refusals, percent);
            checks.at_most_ms(&format!("{name}: refusals, p{percent}"), latency, max_ms);
        }
    }
    let load = Load { clients: options.spent_clients, request: page(&spent), ..full };
    let measured = load.run().await?;
    let name = format!("{} clients with a spent quota", options.spent_clients);
    report(&mut checks, &name, &measured, alone_p95);
    checks.at_most_ms(&format!("{name}: refusals, p99"), percentile(&measured.load.refusals, 99), 1_500.0);
    let attempts = operator.attempts(&spent.id).await?;
    checks.check(&format!("{name}: attempts"), "0", &attempts.to_string(), attempts == 0);
    let stopped = server.stop().await.context("SIGTERM")?;
    checks.check("SIGTERM", "nothing left", &stopped.text(), stopped.left.is_empty());
    checks.finish()
}

/// The rows that every load has.
fn report(checks: &mut Checks, name: &str, measured: &Measured, alone_p95: f64) {
    let Measured { load, small, rate, cpu } = measured;
    checks.check(&format!("{name}: answers"), "200, 429, 503", &load.text(), load.are_expected());
    checks.figure(
        &format!("{name}: files"),
        &format!("{rate:.1}/s; the generator took {:.0} % of a core", cpu * 100.0),
    );
    let only_files = small.files.len() == small.by_status.values().sum::<usize>();
    checks.check(&format!("{name}: answers of the small account"), "200", &small.text(), only_files);
    let p50 = percentile(&small.files, 50);
    checks.figure(&format!("{name}: small account, p50"), &format!("{p50:.0} ms"));
    checks.at_most_ms(&format!("{name}: small account, p95"), percentile(&small.files, 95), 3.0 * alone_p95);
}
