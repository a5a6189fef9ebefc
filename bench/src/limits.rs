//! A server under limits on descriptors, processes and memory: its statuses, its log, and how soon it recovers.
//!
//! Invariant: after each case the recorded attempts are compared with the answers.

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt as _,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;
use nix::sys::signal::Signal;
use platen_tests::{
    app::{FARM_TOKEN, Options as AppOptions},
    client::RENDER,
    deployment::DatabaseKind,
    farm::StandInFarm,
    operator::{Account, Quota},
    procfs,
    settings::Settings,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::load::{
    checks::Checks,
    client::{Client, Request},
    resources,
    server::Server,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Clients that send one request each at the same time
    #[arg(long, default_value_t = 300)]
    clients: usize,
    /// Limit on the descriptors of a server at its start
    #[arg(long, default_value_t = 256)]
    descriptors: u64,
    /// Only the cases whose names contain this text
    #[arg(long, default_value = "")]
    filter: String,
}

const CASES: [&str; 4] = ["descriptors at the start", "descriptors", "processes", "memory"];
/// Descriptors of a running server beyond those that it has.
const SPARE_DESCRIPTORS: usize = 16;
/// Address space beyond what a running server has.
const SPARE_MEMORY: u64 = 128 * 1024 * 1024;
/// For a killed browser to end.
const BROWSER_EXIT_TIME: Duration = Duration::from_millis(500);
const BODY_BYTES: usize = 900_000;
/// Of a client that waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(1);
/// Lines of warnings and errors that one case may write.
const MAX_LOG_LINES: usize = 40;

/// Runs every case.
pub(crate) async fn run(options: Options) -> Result<()> {
    let mut checks = Checks::new("limits");
    for case in CASES.into_iter().filter(|case| case.contains(&options.filter)) {
        measure(case, &options, &mut checks).await.with_context(|| format!("the case {case:?}"))?;
    }
    checks.finish()
}

async fn measure(case: &str, options: &Options, checks: &mut Checks) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let mut settings = Settings::from_env()?;
    let scripts = tempfile::tempdir()?;
    if case == "descriptors at the start" {
        let script = scripts.path().join("platen");
        let text = format!(
            "#!/bin/sh\nulimit -n {}\nexec '{}' \"$@\"\n",
            options.descriptors,
            settings.platen.display()
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        settings.platen = script;
    }
    let app_options = if case == "processes" {
        AppOptions::own_farm(DatabaseKind::File)
    } else {
        AppOptions::with_farm(DatabaseKind::File, farm.url())
    };
    let server = Server::start_as(&app_options, &settings).await?;
    let account = server.app.operator.account(Quota::Unlimited).await?;
    let padding = if case == "memory" { BODY_BYTES } else { 10 };
    let body = json!({ "html": "x".repeat(padding), "width": 100, "height": 100 }).to_string();
    let request = Request::post(RENDER, &account.key, body);
    let mut counted = usize::from(wait_for_file(&server, &request).await.is_ok());

    let restore = limit(case, &server).await?;
    let (lines, started) = (log_lines(&server), Instant::now());
    let clients = options.clients;
    let statuses = burst(&server, &request, clients).await;
    let longest = started.elapsed().as_secs_f64();
    restore.call(&server)?;
    let text = statuses
        .iter()
        .map(|(status, answers)| format!("{answers} × {status}"))
        .collect::<Vec<_>>()
        .join(", ");
    let are_honest = statuses.keys().all(|status| matches!(status.as_str(), "200" | "503"));
    checks.check(
        &format!("{case}: {clients} clients"),
        "200, 503",
        &format!("{text}; within {longest:.1} s"),
        are_honest,
    );
    let lines = log_lines(&server).saturating_sub(lines);
    checks.check(
        &format!("{case}: warnings and errors in the log"),
        &format!("≤ {MAX_LOG_LINES}"),
        &lines.to_string(),
        lines <= MAX_LOG_LINES,
    );

    let recovery = wait_for_file(&server, &request).await;
    counted += statuses.get("200").copied().unwrap_or_default() + usize::from(recovery.is_ok());
    let text = recovery
        .as_ref()
        .map_or_else(|error| format!("{error:#}"), |time| format!("{:.1} s", time.as_secs_f64()));
    checks.check(
        &format!("{case}: recovery"),
        &format!("≤ {} s", RECOVERY_TIMEOUT.as_secs()),
        &text,
        recovery.is_ok(),
    );
    check_attempts(case, &server, &account, counted, checks).await?;
    if recovery.is_ok() {
        let stopped = server.stop().await?;
        checks.check(&format!("{case}: SIGTERM"), "nothing left", &stopped.text(), stopped.left.is_empty());
    }
    Ok(())
}

/// The argument of `prlimit` that lifts a limit.
struct Restore(Option<String>);

impl Restore {
    fn call(&self, server: &Server) -> Result<()> {
        self.0.as_deref().map_or(Ok(()), |limit| prlimit(server, limit))
    }
}

/// Sets the limit of a case on the running server.
async fn limit(case: &str, server: &Server) -> Result<Restore> {
    let pid = server.pid();
    let (name, limit, value) = match case {
        "descriptors" => {
            ("nofile", "Max open files", (resources::descriptors(pid) + SPARE_DESCRIPTORS).to_string())
        }
        "processes" => ("nproc", "Max processes", "1".to_owned()),
        "memory" => ("as", "Max address space", (procfs::memory(pid, "VmSize")? + SPARE_MEMORY).to_string()),
        _ => return Ok(Restore(None)),
    };
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = limits.lines().find_map(|line| line.strip_prefix(limit)).context(limit)?;
    let before = line.split_whitespace().next().context(limit)?.to_owned();
    prlimit(server, &format!("--{name}={value}:"))?;
    if case == "processes" {
        for browser in procfs::browsers(pid) {
            browser.signal(Signal::SIGKILL)?;
        }
        sleep(BROWSER_EXIT_TIME).await;
    }
    Ok(Restore(Some(format!("--{name}={before}:"))))
}

/// Changes a soft limit.
fn prlimit(server: &Server, limit: &str) -> Result<()> {
    let status = Command::new("prlimit").args(["--pid", &server.pid().to_string(), limit]).status();
    ensure!(status.context("no prlimit: install util-linux")?.success(), "prlimit {limit} failed");
    Ok(())
}

/// One request of each client, all at once.
async fn burst(server: &Server, request: &Request, clients: usize) -> BTreeMap<String, usize> {
    let statuses = join_all((0..clients).map(async |_| {
        let mut client = Client::new(server.address, Ipv4Addr::LOCALHOST);
        match timeout(ANSWER_TIMEOUT, client.send(request)).await {
            Ok(Ok(answer)) => answer.status.to_string(),
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => "no answer in time".to_owned(),
        }
    }))
    .await;
    let mut by_status = BTreeMap::new();
    for status in statuses {
        *by_status.entry(status).or_default() += 1;
    }
    by_status
}

/// The time until a request gets its file.
async fn wait_for_file(server: &Server, request: &Request) -> Result<Duration> {
    let started = Instant::now();
    loop {
        let mut client = Client::new(server.address, Ipv4Addr::LOCALHOST);
        let answer = timeout(ANSWER_TIMEOUT, client.send(request)).await;
        if matches!(&answer, Ok(Ok(answer)) if answer.status == 200) {
            return Ok(started.elapsed());
        }
        ensure!(started.elapsed() < RECOVERY_TIMEOUT, "no file; the last answer: {answer:?}");
        sleep(Duration::from_millis(100)).await;
    }
}

fn log_lines(server: &Server) -> usize {
    let is_problem = |line: &&str| line.contains(" WARN ") || line.contains(" ERROR ");
    server.app.process.log().lines().filter(is_problem).count()
}

async fn check_attempts(
    case: &str,
    server: &Server,
    account: &Account,
    counted: usize,
    checks: &mut Checks,
) -> Result<()> {
    let until = Instant::now() + RECOVERY_TIMEOUT;
    let mut attempts = server.app.operator.attempts(&account.id).await?;
    while attempts != counted as u64 && Instant::now() < until {
        sleep(Duration::from_secs(1)).await;
        attempts = server.app.operator.attempts(&account.id).await?;
    }
    let text = format!("{attempts} attempts, {counted} answers that count");
    checks.check(&format!("{case}: counter"), "answers that count", &text, attempts == counted as u64);
    Ok(())
}
