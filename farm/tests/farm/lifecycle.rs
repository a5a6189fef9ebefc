//! Browsers and farms that end in the middle of a job, jobs that are dropped, and what the farm may use of the machine.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    process::Command,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use nix::sys::signal::Signal;
use platen_harness::{
    procfs,
    wait::{self, MAX_WAIT},
};

use platen_shared::wire;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::pdf_standards::CONFORMANCE;
use crate::support::{
    GREEN_PAGE, MAX_WAIT_MS, Shared, farm,
    farm_process::{FarmProcess, HeldPage, PROGRAM, have_ended},
    file, html, of, send, slow, until_metric,
};

tests! {
    "a dropped job frees its slot" => dropped_job,
    "a browser that hangs is replaced" => hanging_browser,
    "a browser is replaced after its number of jobs" => recycled_browser,
    "browsers end after some time without jobs, except one, and start again for jobs" => idle_browsers,
    "a killed farm leaves no browser, and the next one deletes its profiles" => killed_farm,
    "browsers have no privileges and no token" => unprivileged_browsers,
    OWN_NAMESPACE => own_namespace,
    "a farm that cannot start names the cure" => start_errors,
    "browsers have a lower priority than the farm" => priorities,
    "a farm without programs in its PATH warns of nothing and leaves no process" => no_programs,
    "a farm that may not start processes refuses jobs and recovers" => process_limit,
}

const ENDLESS: &str = "<script>while (true);</script>";

/// Polls a future this many times and drops it; whether it was still pending.
async fn drop_after_polls(future: impl Future, polls: usize) -> bool {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending if left == 0 => Poll::Ready(true),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn dropped_job(_: Arc<Shared>) {
    let farm = farm(|_| {}).await;
    // From the wait for a slot to the frames of a page that is waited for.
    for polls in [1, 2, 4, 8, 16, 40] {
        let slow = slow(10_000.0);
        let dropped = || drop_after_polls(farm.render(&slow, MAX_WAIT), polls);
        assert_eq!(tokio::join!(dropped(), dropped()), (true, true), "{polls} polls");
        // Both slots are free again.
        let page = html(GREEN_PAGE);
        tokio::join!(file(&farm, &page), file(&farm, &page));
    }
    farm.shutdown().await;
}

async fn hanging_browser(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let browser = farm.browser().await;
    browser.signal(Signal::SIGSTOP).unwrap();
    farm.file(&html(GREEN_PAGE)).await;
    assert_eq!(farm.metric("platen_farm_browser_ends_total{reason=\"killed\"}").await, 1);
    have_ended(&[browser]).await;
    farm.end().await;
}

async fn recycled_browser(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1", "--recycle-after", "2"]).await;
    let first = farm.browser().await;
    for _ in 0..5 {
        farm.file(&html(GREEN_PAGE)).await;
    }
    have_ended(&[first]).await;
    assert_eq!(farm.metric("platen_farm_browser_ends_total{reason=\"died\"}").await, 0);
    assert_eq!(farm.metric("platen_farm_retries_total").await, 0);
    farm.end().await;
}

async fn idle_browsers(_: Arc<Shared>) {
    let farm = farm(|config| config.idle_check_interval = Duration::from_secs(1)).await;
    let jobs = ["a", "b"].map(|account| of(account, slow(500.0)));
    let jobs_at_once = async || tokio::join!(file(&farm, &jobs[0]), file(&farm, &jobs[1]));
    until_metric(&farm, "platen_farm_browsers 1").await;
    let page = of("a", html(GREEN_PAGE));
    for _ in 0..2 {
        file(&farm, &page).await;
    }
    until_metric(&farm, "platen_farm_pages_warm 1").await;
    until_metric(&farm, "platen_farm_pages_warm 0").await;
    for starts in [3, 4] {
        assert!(farm.readiness().is_ready());
        jobs_at_once().await;
        until_metric(&farm, &format!("platen_farm_browser_starts_total {starts}")).await;
        until_metric(&farm, "platen_farm_browsers 1").await;
    }
    until_metric(&farm, "platen_farm_browser_ends_total{reason=\"idle\"} 3").await;
    farm.shutdown().await;
}

async fn killed_farm(_: Arc<Shared>) {
    let farm = FarmProcess::start(&[]).await;
    let _job = tokio::spawn(farm.post(&html(ENDLESS)).send());
    farm.until_renderer().await;
    let browser = farm.browser().await;
    let workspace = browser.browser_workspace().unwrap();
    // A stopped browser cannot notice that its pipe is closed: the kernel must kill it.
    browser.signal(Signal::SIGSTOP).unwrap();
    let directory = farm.kill().await;
    assert!(workspace.exists());
    let mut next = FarmProcess::start_in(directory, &[]).await;
    assert!(!workspace.exists());
    // Again and again, while browsers start.
    for _ in 0..5 {
        next = FarmProcess::start_in(next.kill().await, &[]).await;
    }
    // No file of a killed farm is left.
    next.end().await;
}

async fn unprivileged_browsers(_: Arc<Shared>) {
    let held = HeldPage::start(&[]).await;
    let job = held.post();
    held.until_loading(1).await;
    let is_root = nix::unistd::Uid::effective().is_root();
    for process in procfs::descendants(held.farm.pid()) {
        // A renderer installs its seccomp filter when it starts, and spare pages are opened all the time.
        if process.command_line().contains("--type=renderer") {
            let is_filtered = || process.status("Seccomp").is_none_or(|mode| mode == "2");
            wait::until("the renderer has a seccomp filter", is_filtered).await.unwrap();
        }
        let Some(user) = process.status("Uid") else { continue };
        assert!(!is_root || user != "0", "{}", process.command_line());
        assert_ne!(process.status("NoNewPrivs").as_deref(), Some("0"), "{}", process.command_line());
        let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains("TOKEN"), "{}", process.command_line());
    }
    held.latch.open();
    assert_eq!(job.await.unwrap().unwrap().status(), 200);
    held.farm.end().await;
}

const OWN_NAMESPACE: &str = "a farm renders in a process namespace of its own";
const UNSHARE: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Why a test cannot run on this machine.
pub(crate) fn ignored(name: &str) -> Option<&'static str> {
    let is_permitted =
        || Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").output().unwrap().status.success();
    let has_checker = || std::env::var("PLATEN_CLIENTS").is_ok_and(|directory| !directory.is_empty());
    match name {
        OWN_NAMESPACE if !is_permitted() => Some("process namespaces are not permitted"),
        CONFORMANCE if !has_checker() => Some("PLATEN_CLIENTS is not set"),
        _ => None,
    }
}

/// The same as in a container: the farm has the process id 1, and its session is that of a process outside.
async fn own_namespace(_: Arc<Shared>) {
    let farm = FarmProcess::start_by(UNSHARE, &["--browsers", "1"]).await;
    farm.file(&html(GREEN_PAGE)).await;
    let processes = procfs::descendants(farm.pid());
    let inner = processes.iter().find(|it| it.command_line().starts_with(PROGRAM)).unwrap();
    inner.signal(Signal::SIGTERM).unwrap();
    farm.ended(&processes).await;
}

async fn start_errors(_: Arc<Shared>) {
    for (arguments, token, message) in [
        (&[][..], "", "PLATEN_FARM_TOKEN"),
        (&["--chromium", "/nowhere/chrome"], "x", "/nowhere/chrome"),
        (&["--chromium", "/bin/false"], "x", "no browser could be started"),
        (&["--token", "x"], "x", "unexpected argument '--token'"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(["--listen", "127.0.0.1:0"]).args(arguments).env("PLATEN_FARM_TOKEN", token);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(message), "{arguments:?}: {errors}");
    }
}

async fn priorities(_: Arc<Shared>) {
    const OF_BROWSERS: i32 = 2;
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    farm.until_metric("platen_farm_browsers", 2).await;
    farm.file(&html("<p>x")).await;
    let nice_of = |process| procfs::nice_values(process)[0];
    let own = nice_of(std::process::id());
    assert_eq!(nice_of(farm.pid()), own);
    for browser in procfs::browsers(farm.pid()) {
        assert_eq!(nice_of(browser.pid), own.max(OF_BROWSERS));
    }
    farm.end().await;
}

/// None of its commands is looked up in its `PATH`.
async fn no_programs(_: Arc<Shared>) {
    let farm = FarmProcess::start_by(&["env", "PATH=/nowhere"], &["--browsers", "2"]).await;
    let looping = farm.post(&html(ENDLESS)).header(wire::DEADLINE_MS, 4_000).send();
    let looping = tokio::spawn(looping);
    for _ in 0..5 {
        farm.file(&html("<p>x")).await;
    }
    assert_eq!(looping.await.unwrap().unwrap().status(), 504);
    assert!(!farm.log().contains("WARN"), "{}", farm.log());
    farm.kill().await;
}

async fn process_limit(_: Arc<Shared>) {
    const JOBS: usize = 100;
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    farm.file(&html("<p>x")).await;
    let pid = Pid::from_raw(farm.pid().cast_signed());
    let limit = |limit: Rlimit| prlimit(pid, Resource::Nproc, limit).unwrap();
    let before = limit(Rlimit { current: Some(1), maximum: getrlimit(Resource::Nproc).maximum });
    farm.browser().await.signal(Signal::SIGKILL).unwrap();
    farm.until_metric("platen_farm_browsers", 0).await;
    for _ in 0..JOBS {
        let (status, body) = send(&farm, &html("<p>x"), MAX_WAIT_MS).await;
        assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), (503, r#"{"code":"no_browser"}"#));
    }
    let failures = farm.log().matches("browser did not start").count();
    assert!((1..JOBS / 2).contains(&failures), "{failures} lines");
    limit(before);
    let renders = async || Ok(send(&farm, &html("<p>x"), MAX_WAIT_MS).await.0 == 200);
    wait::until_true("the farm renders again", renders).await.unwrap();
    farm.end().await;
}
