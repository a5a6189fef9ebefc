//! The CPU priorities of the farm and its browsers, and farms that may not start processes.

use std::sync::Arc;

use nix::sys::signal::Signal;
use platen_tests::{
    procfs::{self, ProcessId},
    wait,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::{
    Test,
    support::{MAX_WAIT_MS, Shared, farm_process::FarmProcess, html, of, send, slow},
};

pub(crate) const TESTS: &[Test] = &[
    ("browsers have a lower priority than the farm", |s| Box::pin(priorities(s))),
    ("a browser has its priority again after a heavy job", |s| Box::pin(heavy_job(s))),
    ("a farm that may not start processes refuses jobs and recovers", |s| Box::pin(process_limit(s))),
];

/// The nice value of a process and that of its session.
fn nice(process: &ProcessId) -> Option<(i32, i32)> {
    let nice = *process.nice_values().first()?;
    Some((nice, process.session_nice().unwrap_or(nice)))
}

/// The nice values of a browser beside this farm, and this many levels below other browsers.
fn expected(farm: &FarmProcess, levels: i32) -> Option<(i32, i32)> {
    let beside = |nice: i32| if nice < 0 { 0 } else { nice + 2 };
    let (threads, session) = nice(&farm.id())?;
    Some(((beside(threads) + levels).min(19), (beside(session) + levels).min(19)))
}

async fn priorities(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    farm.until_metric("platen_farm_browsers", 2).await;
    assert_eq!(send(&farm, &html("<p>x"), MAX_WAIT_MS).await.0, 200);
    let of_farm = farm.id().nice_values();
    let own = procfs::nice_values(std::process::id())[0];
    let is_raised = nix::unistd::Uid::effective().is_root() && own == 0;
    // Those of the runtime, of blocking calls and of browsers.
    assert!(of_farm.iter().all(|nice| *nice == if is_raised { -10 } else { own }), "{of_farm:?}");
    let (of_browsers, _) = expected(&farm, 0).unwrap();
    for process in procfs::descendants(farm.pid()) {
        // Chromium lowers the priority of some threads and processes itself.
        let lowest = process.nice_values().into_iter().min().unwrap_or(of_browsers);
        assert!(lowest >= of_browsers && lowest > of_farm[0], "{lowest}: {}", process.command_line());
    }
    for browser in procfs::browsers(farm.pid()) {
        assert_eq!(nice(&browser), expected(&farm, 0));
    }
    farm.end().await;
}

async fn heavy_job(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    farm.until_metric("platen_farm_browsers", 2).await;
    let heavy = of("heavy", html("<script>while (true);</script>"));
    let other = of("other", slow(10_000.0));
    let has_low_priority =
        || procfs::browsers(farm.pid()).iter().any(|browser| nice(browser) == expected(&farm, 10));
    let jobs = async {
        loop {
            tokio::join!(send(&farm, &heavy, 10_000), send(&farm, &other, MAX_WAIT_MS));
        }
    };
    tokio::select! {
        () = jobs => {}
        lowered = wait::until("a browser has a low priority", has_low_priority) => lowered.unwrap(),
    }
    // The dropped jobs end. A farm that may not raise a priority replaces the browser.
    let all_are_normal = || {
        let browsers = procfs::browsers(farm.pid());
        browsers.len() >= 2 && browsers.iter().all(|it| nice(it) == expected(&farm, 0))
    };
    wait::until("all browsers have their priority", all_are_normal).await.unwrap();
    farm.end().await;
}

async fn process_limit(_: Arc<Shared>) {
    const JOBS: usize = 100;
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    assert_eq!(send(&farm, &html("<p>x"), MAX_WAIT_MS).await.0, 200);
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
    let renders = async || Ok((send(&farm, &html("<p>x"), MAX_WAIT_MS).await.0 == 200).then_some(()));
    wait::until_some("the farm renders again", renders).await.unwrap();
    farm.end().await;
}
