//! Good requests of one client beside other clients: slow ones, hundreds that send again at once, and one with bad keys.
//!
//! Invariant: all clients run on one thread, whose CPU time is printed. The good client is 127.0.0.1, the others have other
//! loopback addresses. Clients begin no request after the end of the measurement, and the server is stopped shortly after it.

mod crowd;
mod good;

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use platen_harness::{client::RENDER, operator::Quota, procfs};
use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{sleep, sleep_until},
};

use self::{
    crowd::{Behaviour, Caller, Crowd},
    good::{Good, Measured},
};
use crate::{
    checks::Checks,
    client::Request,
    number_marker, resources,
    server::{BROWSERS, Server, WARM_UP, on_own_thread, own_farm},
    statistics::{Tally, count, mebibytes, percentiles_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each case
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// A few seconds and clients; fails only for wrong answers and memory, not for times
    #[arg(long)]
    short: bool,
}

/// Seconds and the share of the other clients in a short run, in percent.
const SHORT: (u64, usize) = (4, 10);
/// The time before the end of the measurement, while all clients still send.
const READING_TIME: Duration = Duration::from_millis(500);
/// The time after which the last requests have been sent on their connections, and are in progress.
const SIGNAL_DELAY: Duration = Duration::from_millis(100);
const STOP_TIMEOUT: Duration = Duration::from_secs(45);
/// Memory of the server beyond its start.
const MAX_MEMORY_MIB: f64 = 768.0;
const MIN_GOODPUT_PERCENT: f64 = 50.0;
const COSTLY_CLIENTS: usize = 8;
/// Time of good requests beside costly bodies, as a multiple of that alone.
const MAX_SLOWDOWN: f64 = 3.0;

/// Runs every case.
pub(crate) async fn run(mut options: Options) -> Result<()> {
    let mut checks = Checks::new("clients");
    let mut percent = 100;
    if options.short {
        checks.ignore_times();
        (options.seconds, percent) = SHORT;
    }
    let share = |clients: usize| clients * percent / 100;
    let costly = |caller| Behaviour::Costly { clients: COSTLY_CLIENTS, caller };
    let cases = [
        ("slow clients", Behaviour::Slow { uploads: share(16), heads: share(500), bodies: share(200) }),
        ("clients that send again at once", Behaviour::Retrying { clients: share(500) }),
        ("a client with bad keys", Behaviour::BadKeys { connections: share(200) }),
        ("costly bodies without a key", costly(Caller::WithoutKey)),
        ("costly bodies with unknown keys", costly(Caller::UnknownKey)),
        ("costly bodies with a key without quota", costly(Caller::WithoutQuota)),
    ];
    for (name, behaviour) in cases {
        case(name, behaviour, &options, &mut checks).await.with_context(|| format!("the case {name:?}"))?;
    }
    checks.finish()
}

/// Measures a server, and stops it beside all clients.
async fn case(name: &str, behaviour: Behaviour, options: &Options, checks: &mut Checks) -> Result<()> {
    let server = Server::start(&own_farm()).await?;
    let operator = &server.app.operator;
    let (account, other) =
        (operator.account(Quota::Unlimited).await?, operator.account(Quota::Unlimited).await?);
    let good = Good { address: server.address, key: account.key };
    // What the server can do: as many clients as there are browsers.
    let ordinary = Crowd {
        behaviour: Behaviour::Retrying { clients: BROWSERS },
        address: server.address,
        key: other.key,
    };
    let exhausted = operator.account(Quota::Of(0)).await?;
    let is_costly = matches!(behaviour, Behaviour::Costly { .. });
    let key = if is_costly { exhausted.key } else { ordinary.key.clone() };
    let crowd = Crowd { behaviour, key, ..ordinary.clone() };
    let retries = matches!(behaviour, Behaviour::Retrying { .. });
    let duration = Duration::from_secs(options.seconds);
    let undisturbed = |others, duration| send(&good, others, Instant::now() + duration, oneshot::channel().0);
    undisturbed(Some(&ordinary), WARM_UP).await?;
    let before = undisturbed(retries.then_some(&ordinary), duration / 2).await?;

    let memory = procfs::memory(server.pid(), "VmRSS")?;
    procfs::reset_peak_memory(server.pid())?;
    let began = Instant::now();
    let until = began + duration;
    let (last, connected) = oneshot::channel();
    let stop = async {
        sleep_until((began + duration.saturating_sub(READING_TIME)).into()).await;
        let connections = resources::connections(server.pid(), server.address);
        let memory = mebibytes(procfs::memory(server.pid(), "VmHWM")?.saturating_sub(memory));
        connected.await.context("the good client has ended")?;
        sleep(SIGNAL_DELAY).await;
        Ok((connections, memory, server.stop().await?))
    };
    let (sent, (connections, memory, stopped)) =
        tokio::try_join!(send(&good, Some(&crowd), until, last), stop)?;

    let clients = behaviour.clients();
    let name = format!("{clients} × {name}");
    let cpu = 100.0 * sent.cpu.as_secs_f64() / duration.as_secs_f64();
    let text = format!("{connections}; the generator took {cpu:.0} % of a core");
    checks.check(&format!("{name}: open"), "at least half", &text, 2 * connections >= clients);
    let p95 = |sent: &Sent| percentiles_ms(&sent.good.latencies, [95])[0];
    let text =
        format!("{}; p95 {:.0} ms, before {:.0} ms", sent.good.answers.text(), p95(&sent), p95(&before));
    let holds = sent.good.answers.are_among(&["200"]) && sent.good.answers.files > 0;
    checks.check(&format!("{name}: good requests"), "each its file", &text, holds);
    if is_costly {
        let slowdown = p95(&sent) / p95(&before);
        let (limit, text) = (format!("≤ {MAX_SLOWDOWN} × alone"), format!("{slowdown:.2} × alone"));
        checks.check_time(&format!("{name}: p95"), &limit, &text, slowdown <= MAX_SLOWDOWN);
    }
    if retries {
        let [rate, capacity] =
            [sent.files() / duration.as_secs_f64(), before.files() / (duration / 2).as_secs_f64()];
        checks.figure(&format!("{name}: files"), &format!("{rate:.1}/s, capacity {capacity:.1}/s"));
        let goodput = 100.0 * rate / capacity;
        checks.at_least_percent(&format!("{name}: goodput of capacity"), goodput, MIN_GOODPUT_PERCENT);
    }
    let expected = behaviour.expected();
    if !expected.is_empty() {
        let holds = sent.others.are_among(expected);
        checks.check(&format!("{name}: answers"), &expected.join(", "), &sent.others.text(), holds);
    }
    checks.at_most(&format!("{name}: peak memory beyond the start"), memory, MAX_MEMORY_MIB, " MiB");
    let (text, holds) = (sent.good.last.text(), sent.good.last.are_among(&["200", "503"]));
    checks.check(&format!("{name}: good requests at SIGTERM"), "each an answer", &text, holds);
    check_stopped(checks, &name, &stopped);
    Ok(())
}

fn check_stopped(checks: &mut Checks, name: &str, stopped: &platen_harness::process::Stopped) {
    let limit = format!("success within {} s, nothing left", STOP_TIMEOUT.as_secs());
    let holds =
        stopped.status == "exit status: 0" && stopped.duration <= STOP_TIMEOUT && stopped.left.is_empty();
    checks.check(&format!("{name}: SIGTERM"), &limit, &stopped.text(), holds);
}

/// The answers to what all clients have sent.
struct Sent {
    good: Measured,
    others: Answers,
    /// CPU time of the generator.
    cpu: Duration,
}

impl Sent {
    /// Files of all clients before the end of the measurement.
    fn files(&self) -> f64 {
        count(self.good.answers.files + self.others.files)
    }
}

/// Sends requests until this instant, and waits until all clients have ended. The last requests are connected when the
/// sender is used.
async fn send(
    good: &Good,
    others: Option<&Crowd>,
    until: Instant,
    connected: oneshot::Sender<()>,
) -> Result<Sent> {
    let (good, others) = (good.clone(), others.cloned());
    let ((good, others), cpu) = on_own_thread(async move || {
        let answers = Rc::<RefCell<Answers>>::default();
        let clients = others.map_or_else(Vec::new, |others| others.start(until, &answers));
        let good = good.run(until, connected).await;
        for client in clients {
            client.await?;
        }
        Ok((good, answers.take()))
    })
    .await?;
    Ok(Sent { good, others, cpu })
}

/// The number of requests by status, or by error where there was no answer.
#[derive(Debug, Default)]
struct Answers {
    by_status: Tally<String>,
    /// Files before the end of the measurement.
    files: usize,
}

impl Answers {
    fn add(&mut self, outcome: Result<u16>, until: Instant) {
        let status = outcome.map_or_else(|error| format!("{error:#}"), |status| status.to_string());
        self.files += usize::from(status == "200" && Instant::now() < until);
        self.by_status.add(status);
    }

    fn are_among(&self, statuses: &[&str]) -> bool {
        self.by_status.0.keys().all(|status| statuses.contains(&status.as_str()))
    }

    fn text(&self) -> String {
        self.by_status.to_string()
    }
}

/// A page that draws its number, with so many further bytes.
fn render_request(key: &str, number: u16, padding: usize) -> Request {
    let html = format!("{}<!--{}-->", number_marker::page(number), "x".repeat(padding));
    Request::post(RENDER, key, json!({ "html": html, "width": 400, "height": 300 }).to_string())
}
