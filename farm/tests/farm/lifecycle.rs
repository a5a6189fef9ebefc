//! Browsers and farms that die, and jobs that are dropped.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use crate::{
    Test,
    support::{
        PATIENCE, Shared, farm, html,
        leftovers::{self, Process},
        program::Program,
        slow,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("a dropped job frees its slot", |s| Box::pin(dropped(s))),
    ("a browser killed in the middle of a job", |s| Box::pin(killed_browser(s))),
    ("a renderer killed in the middle of a job", |s| Box::pin(killed_renderer(s))),
    ("a page that kills its renderer every time", |s| Box::pin(crashing(s))),
    ("a browser that hangs is replaced", |s| Box::pin(hanging(s))),
    ("a browser that has served is replaced", |s| Box::pin(recycled(s))),
    ("a killed farm leaves no browser, and the next one sweeps", |s| Box::pin(killed_farm(s))),
    ("a farm that is told to end finishes its jobs", |s| Box::pin(told_to_end(s))),
    ("browsers have no privileges and know no token", |s| Box::pin(unprivileged(s))),
    ("a farm that cannot start says what to do", |s| Box::pin(hopeless(s))),
];

const PAGE: &str = "<!doctype html><html style='background:green'>";
const ENDLESS: &str = "<script>while (true);</script>";

async fn dropped(_: Arc<Shared>) {
    let farm = farm(|_| {}).await;
    for wait in [0, 5, 20, 60, 150, 400] {
        let slow = slow(10_000.0);
        let dropped = || tokio::time::timeout(Duration::from_millis(wait), farm.render(&slow, PATIENCE));
        let (one, other) = tokio::join!(dropped(), dropped());
        assert!(one.is_err() && other.is_err());
        // Both slots come back, however far the jobs were.
        let page = html(PAGE);
        let (one, other) = tokio::join!(farm.render(&page, PATIENCE), farm.render(&page, PATIENCE));
        assert!(one.is_ok() && other.is_ok());
    }
    farm.shutdown().await;
}

async fn killed_browser(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let slow = slow(1_500.0);
    let job = tokio::spawn(program.post(&slow).send());
    program.until("platen_farm_slots_busy", 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    program.browser().await.signal(Signal::SIGKILL);
    // Tried again on the next browser.
    assert_eq!(job.await.unwrap().unwrap().status(), 200);
    assert_eq!(program.metric("platen_farm_retries_total").await, 1);
    assert_eq!(program.metric("platen_farm_browser_ends_total{reason=\"died\"}").await, 1);
    assert_eq!(program.post(&html(PAGE)).send().await.unwrap().status(), 200);
    program.end().await;
}

async fn killed_renderer(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let slow = slow(3_000.0);
    let job = tokio::spawn(program.post(&slow).send());
    program.until("platen_farm_slots_busy", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    program.kill_renderers();
    assert_eq!(job.await.unwrap().unwrap().status(), 200);
    assert_eq!(program.metric("platen_farm_retries_total").await, 1);
    assert_eq!(program.metric("platen_farm_browser_starts_total").await, 1);
    program.end().await;
}

async fn crashing(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let job = tokio::spawn(program.post(&html(ENDLESS)).send());
    program.until("platen_farm_slots_busy", 1).await;
    while !job.is_finished() {
        // Time enough for the next attempt to be in the middle of its page.
        tokio::time::sleep(Duration::from_millis(700)).await;
        program.kill_renderers();
    }
    let response = job.await.unwrap().unwrap();
    assert_eq!(response.status(), 422);
    assert_eq!(response.text().await.unwrap(), r#"{"code":"page_crashed"}"#);
    program.end().await;
}

async fn hanging(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let browser = program.browser().await;
    browser.signal(Signal::SIGSTOP);
    assert_eq!(program.post(&html(PAGE)).send().await.unwrap().status(), 200);
    assert_eq!(program.metric("platen_farm_browser_ends_total{reason=\"killed\"}").await, 1);
    browser.gone().await;
    program.end().await;
}

async fn recycled(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1", "--recycle-after", "2"]).await;
    let first = program.browser().await;
    for _ in 0..5 {
        assert_eq!(program.post(&html(PAGE)).send().await.unwrap().status(), 200);
    }
    first.gone().await;
    assert_eq!(program.metric("platen_farm_browser_ends_total{reason=\"died\"}").await, 0);
    assert_eq!(program.metric("platen_farm_retries_total").await, 0);
    program.end().await;
}

async fn killed_farm(_: Arc<Shared>) {
    let mut program = Program::start(&[]).await;
    let _job = tokio::spawn(program.post(&html(ENDLESS)).send());
    program.page().await;
    let processes = leftovers::below(program.id());
    let browser = program.browser().await;
    let home = leftovers::workspace(&browser);
    // One that is stopped cannot notice that its pipe has ended: the kernel must see to it.
    browser.signal(Signal::SIGSTOP);
    program.kill();
    for process in processes {
        process.gone().await;
    }
    assert!(home.exists());
    let next = Program::start_in(program.into_directory(), &[]).await;
    assert!(!home.exists());
    next.end().await;
}

async fn told_to_end(_: Arc<Shared>) {
    let program = Program::start(&[]).await;
    let slow = slow(2_000.0);
    let job = tokio::spawn(program.post(&slow).send());
    program.until("platen_farm_slots_busy", 1).await;
    program.end().await;
    assert_eq!(job.await.unwrap().unwrap().status(), 200);
}

async fn unprivileged(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let job = tokio::spawn(program.post(&html(ENDLESS)).header("x-platen-deadline-ms", "5000").send());
    program.page().await;
    let root = nix::unistd::Uid::effective().is_root();
    let begun = Instant::now();
    for process in leftovers::below(program.id()) {
        // A renderer shuts itself in only once it runs, and spares are opened all the time.
        let renderer = process.command.contains("--type=renderer");
        while renderer && process.lives() && process.status("Seccomp:").is_some_and(|mode| mode != "2") {
            assert!(begun.elapsed() < PATIENCE, "without a filter: {process:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let Some(user) = process.status("Uid:") else { continue };
        assert!(!root || user != "0", "{process:?}");
        assert_ne!(process.status("NoNewPrivs:").as_deref(), Some("0"), "{process:?}");
        let environment = std::fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains("TOKEN"), "{process:?}");
    }
    job.await.unwrap().unwrap();
    program.end().await;
}

async fn hopeless(_: Arc<Shared>) {
    for (arguments, token, message) in [
        (&[][..], "", "PLATEN_FARM_TOKEN"),
        (&["--chromium", "/nowhere/chrome"], "x", "/nowhere/chrome"),
        (&["--chromium", "/bin/false"], "x", "no browser could be started"),
        (&["--token", "x"], "x", "unexpected argument '--token'"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_platen-farm"));
        command.args(["--listen", "127.0.0.1:0"]).args(arguments).env("PLATEN_FARM_TOKEN", token);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(message), "{arguments:?}: {said}");
    }
}

impl Process {
    pub(crate) fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.id.cast_signed()), signal).unwrap();
    }

    /// The first word of a field of the kernel's account of it; none if it has ended.
    pub(crate) fn status(&self, field: &str) -> Option<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
        rest.split_whitespace().next().map(str::to_owned)
    }

    async fn gone(&self) {
        while self.lives() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
