//! What the farm and its browsers may use of the machine: CPU priorities, and processes.

use std::sync::Arc;

use nix::sys::signal::Signal;
use platen_harness::{procfs, wait};
use platen_shared::wire;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::{MAX_WAIT_MS, Shared, farm_process::FarmProcess, html, send};

tests! {
    "browsers have a lower priority than the farm" => priorities,
    "a farm without programs in its PATH warns of nothing and leaves no process" => no_programs,
    "a farm that may not start processes refuses jobs and recovers" => process_limit,
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
    let looping = farm.post(&html("<script>while (true);</script>")).header(wire::DEADLINE_MS, 4_000).send();
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
    let before =
        limit(Rlimit { current: Some(1), maximum: rustix::process::getrlimit(Resource::Nproc).maximum });
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
