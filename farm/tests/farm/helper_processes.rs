//! Processes of a browser that are killed while a page uses them: no failure of them looks like one of the page.

use std::sync::Arc;

use platen_harness::{latch::Latch, site::Reply};

use crate::{
    Test,
    support::{
        GREEN, MAX_WAIT_MS, Shared, colour,
        farm_process::{FarmProcess, HeldPage},
        html, send,
        site::Site,
        url,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("a job is tried again if its document fails with the network service", |s| Box::pin(document(s))),
    ("a job is tried again if a redirect fails with the network service", |s| Box::pin(redirect(s))),
    ("a job is tried again if a picture fails with the network service", |s| Box::pin(picture(s))),
    ("a job is broken if its network service exits twice", |s| Box::pin(twice(s))),
    ("a job after the network service has exited has its page", |s| Box::pin(idle(s))),
    ("a page without requests does not need the network service", |s| Box::pin(no_requests(s))),
    ("a job does not fail with the GPU process", |s| Box::pin(gpu_process(s))),
];

const NETWORK_SERVICE: &str = "network.mojom.NetworkService";
const GPU_PROCESS: &str = "--type=gpu-process";
const PAGE: &str = "<!doctype html><html style='background:green'>";

/// Kills the network service while a job waits for the response at `/held`. The URL of the job is `first`.
async fn killed_at_held(first: &str, reply: impl FnOnce(&Site) -> Reply) {
    let (farm, site) = (FarmProcess::start(&["--browsers", "1"]).await, Site::start().await);
    let latch = Latch::closed();
    site.put("/held", reply(&site).behind(&latch));
    let page = url(&site.at(first));
    let killing = async {
        site.until_hits("/held", 1).await;
        farm.kill_helpers(NETWORK_SERVICE);
        site.until_hits("/held", 2).await;
        latch.open();
    };
    let ((status, file), ()) = tokio::join!(send(&farm, &page, MAX_WAIT_MS), killing);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&file));
    assert_eq!(colour(&file), GREEN);
    assert_eq!(farm.metric("platen_farm_retries_total").await, 1);
    farm.end().await;
}

async fn document(_: Arc<Shared>) {
    killed_at_held("/held", |_| Reply::page(PAGE)).await;
}

async fn redirect(_: Arc<Shared>) {
    killed_at_held("/to?/held", |_| Reply::redirect("/green")).await;
}

async fn picture(_: Arc<Shared>) {
    let held = HeldPage::start(&["--browsers", "1"]).await;
    let job = held.post();
    held.until_loading(1).await;
    held.farm.kill_helpers(NETWORK_SERVICE);
    held.until_loading(2).await;
    held.latch.open();
    assert_eq!(job.await.unwrap().unwrap().status(), 200);
    assert_eq!(held.farm.metric("platen_farm_retries_total").await, 1);
    held.farm.end().await;
}

async fn twice(_: Arc<Shared>) {
    let held = HeldPage::start(&["--browsers", "1"]).await;
    let job = held.post();
    for attempt in 1..=2 {
        held.until_loading(attempt).await;
        held.farm.kill_helpers(NETWORK_SERVICE);
    }
    let response = job.await.unwrap().unwrap();
    assert_eq!(response.status(), 502);
    assert_eq!(response.text().await.unwrap(), r#"{"code":"broken"}"#);
    held.farm.end().await;
}

/// The page was opened before, and has no proxy any more.
async fn idle(_: Arc<Shared>) {
    let (farm, site) = (FarmProcess::start(&["--browsers", "2"]).await, Site::start().await);
    let page = url(&site.at("/green"));
    assert_eq!(send(&farm, &page, MAX_WAIT_MS).await.0, 200);
    for _ in 0..3 {
        farm.kill_helpers(NETWORK_SERVICE);
        for _ in 0..3 {
            let (status, file) = send(&farm, &page, MAX_WAIT_MS).await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&file));
            assert_eq!(colour(&file), GREEN);
        }
    }
    farm.until_metric("platen_farm_browsers", 2).await;
    farm.end().await;
}

async fn no_requests(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    farm.kill_helpers(NETWORK_SERVICE);
    let (status, file) = send(&farm, &html(PAGE), MAX_WAIT_MS).await;
    assert_eq!((status, colour(&file)), (200, GREEN));
    farm.end().await;
}

async fn gpu_process(_: Arc<Shared>) {
    let held = HeldPage::start(&["--browsers", "1"]).await;
    let job = held.post();
    held.until_loading(1).await;
    held.farm.kill_helpers(GPU_PROCESS);
    held.latch.open();
    let response = job.await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(colour(&response.bytes().await.unwrap()), GREEN);
    held.farm.end().await;
}
