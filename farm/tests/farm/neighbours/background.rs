//! A heavy job is paused while other jobs begin, and all pictures are correct.

use std::sync::Arc;

use platen_tests::{busy_loops::BusyLoops, procfs, wait};

use super::numbered;
use crate::support::{MAX_WAIT_MS, Shared, colour, farm_process::FarmProcess, html, of, send, waiting};

const PAUSES: u64 = 5;

pub(super) async fn test(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    farm.until_metric("platen_farm_browsers", 2).await;
    let busy = BusyLoops::start(1).unwrap();
    // Heavy, with a timer in its wait.
    let page = "<!doctype html><script>const end = performance.now() + 1500; while (performance.now() < end);\
        setTimeout(() => document.documentElement.style.background = 'lime', 700)</script>";
    let heavy = waiting(of("heavy", html(page)), 1_000.0);
    let others = async {
        let mut number = 0;
        while farm.metric("platen_farm_background_pauses_total").await < PAUSES {
            let (job, colour_of_job) = numbered(number);
            let (status, file) = send(&farm, &of("good", job), MAX_WAIT_MS).await;
            assert_eq!((status, colour(&file)), (200, colour_of_job), "{number}");
            number += 1;
        }
    };
    let heavy_jobs = async {
        loop {
            let (status, file) = send(&farm, &heavy, MAX_WAIT_MS).await;
            assert_eq!((status, colour(&file)), (200, [0, 255, 0]));
        }
    };
    tokio::select! {
        () = heavy_jobs => {}
        () = others => {}
    }
    let (job, colour_of_job) = numbered(7);
    let (status, file) = send(&farm, &of("heavy", job), MAX_WAIT_MS).await;
    assert_eq!((status, colour(&file)), (200, colour_of_job));
    drop(busy);
    farm.end().await;
}

/// A farm that is killed during a pause leaves no process: those that are stopped could not end by themselves.
pub(super) async fn killed(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    farm.until_metric("platen_farm_browsers", 2).await;
    let busy = BusyLoops::start(1).unwrap();
    let heavy = of("heavy", html("<script>while (true);</script>"));
    let heavy_jobs = async {
        loop {
            send(&farm, &heavy, MAX_WAIT_MS).await;
        }
    };
    let others = async {
        loop {
            send(&farm, &of("good", numbered(1).0), MAX_WAIT_MS).await;
        }
    };
    let stopped = wait::until("a renderer is stopped", || {
        procfs::renderers(farm.pid())
            .iter()
            .any(|renderer| procfs::is_stopped(renderer.pid) && renderer.is_alive())
    });
    tokio::select! {
        () = heavy_jobs => {}
        () = others => {}
        stopped = stopped => stopped.unwrap(),
    }
    let processes = procfs::descendants(farm.pid());
    let _directory = farm.kill().await;
    drop(busy);
    for process in &processes {
        wait::until("the process ends", || !process.is_alive()).await.unwrap();
    }
}
