//! Processes of a browser that end or stand still while a page uses them: no failure of them looks like one of the page.

use std::sync::Arc;

use futures::future::join_all;
use nix::sys::signal::Signal;
use platen_harness::{latch::Latch, procfs, site::Reply};

use crate::support::{
    GREEN_PAGE, Shared,
    farm_process::{FarmProcess, HeldPage},
    html,
    site::Site,
    status_and_code, url,
};

tests! {
    "a job is tried again after a process of its browser has ended" => tried_again,
    "a page whose browser does not live through it is refused" => refused,
    "a job is tried again if its document fails with the network service" => document,
    "a job after the network service has exited has its page" => idle,
    "a page without requests does not need the network service" => no_requests,
}

const NETWORK_SERVICE: &str = "network.mojom.NetworkService";
const GPU_PROCESS: &str = "--type=gpu-process";

/// What happens to a browser while its page waits for a picture.
type Event = fn(&FarmProcess);

fn signal_browser(farm: &FarmProcess, signal: Signal) {
    let [browser] = &procfs::browsers(farm.pid())[..] else { panic!("not one browser") };
    browser.signal(signal).unwrap();
}

fn kill_network_service(farm: &FarmProcess) {
    farm.signal_helpers(NETWORK_SERVICE, Signal::SIGKILL);
}

async fn tried_again(_: Arc<Shared>) {
    const DIED: &str = "platen_farm_browser_ends_total{reason=\"died\"}";
    let events: [(&str, Event, u64, (&str, u64)); 5] = [
        ("browser", |farm| signal_browser(farm, Signal::SIGKILL), 1, (DIED, 1)),
        ("renderer", FarmProcess::kill_largest_renderer, 1, ("platen_farm_browser_starts_total", 1)),
        ("network service", kill_network_service, 1, (DIED, 0)),
        ("compositor stands still", |farm| farm.signal_helpers(GPU_PROCESS, Signal::SIGSTOP), 1, (DIED, 0)),
        ("GPU process", |farm| farm.signal_helpers(GPU_PROCESS, Signal::SIGKILL), 0, (DIED, 0)),
    ];
    let tests = events.map(|(name, event, retries, (metric, value))| async move {
        let held = HeldPage::start(&[]).await;
        let events = async {
            held.until_loading(1).await;
            event(&held.farm);
            held.latch.open();
        };
        tokio::join!(held.farm.expect_green(&held.job), events);
        let count = async |metric| held.farm.metric(metric).await;
        assert_eq!(count("platen_farm_retries_total").await, retries, "{name}");
        assert_eq!(count(metric).await, value, "{name}: {metric}");
        held.farm.file(&html(GREEN_PAGE)).await;
        held.farm.end().await;
    });
    join_all(tests).await;
}

async fn refused(_: Arc<Shared>) {
    let events: [(&str, Event, usize, u16, &str); 3] = [
        ("renderer", FarmProcess::kill_largest_renderer, 2, 422, "page_crashed"),
        ("network service", kill_network_service, 2, 502, "broken"),
        // A page that crashes its browser is not tried again.
        ("browser", |farm| signal_browser(farm, Signal::SIGSEGV), 1, 422, "page_crashed"),
    ];
    let tests = events.map(|(name, event, attempts, status, code)| async move {
        let held = HeldPage::start(&[]).await;
        let job = held.post();
        for attempt in 1..=attempts {
            held.until_loading(attempt).await;
            event(&held.farm);
        }
        let refusal = status_and_code(job.await.unwrap().unwrap()).await;
        assert_eq!(refusal, (status, code.to_owned()), "{name}");
        held.farm.file(&html(GREEN_PAGE)).await;
        held.farm.end().await;
    });
    join_all(tests).await;
}

/// The network service is killed while a job waits for its page, or for the target of a redirect.
async fn document(_: Arc<Shared>) {
    for (path, reply) in [("/held", Reply::page(GREEN_PAGE)), ("/to?/held", Reply::redirect("/green"))] {
        let (farm, site) = (FarmProcess::start(&["--browsers", "1"]).await, Site::start().await);
        let latch = Latch::closed();
        site.put("/held", reply.behind(&latch));
        let page = url(&site.at(path));
        let killing = async {
            site.until_hits("/held", 1).await;
            kill_network_service(&farm);
            site.until_hits("/held", 2).await;
            latch.open();
        };
        tokio::join!(farm.expect_green(&page), killing);
        assert_eq!(farm.metric("platen_farm_retries_total").await, 1);
        farm.end().await;
    }
}

/// The page was opened before, and has no proxy any more.
async fn idle(_: Arc<Shared>) {
    let (farm, site) = (FarmProcess::start(&["--browsers", "2"]).await, Site::start().await);
    let page = url(&site.at("/green"));
    farm.file(&page).await;
    for _ in 0..3 {
        kill_network_service(&farm);
        for _ in 0..3 {
            farm.expect_green(&page).await;
        }
    }
    farm.until_metric("platen_farm_browsers", 2).await;
    farm.end().await;
}

async fn no_requests(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    kill_network_service(&farm);
    farm.expect_green(&html(GREEN_PAGE)).await;
    farm.end().await;
}
