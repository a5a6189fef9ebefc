//! No page starts that cannot end by its job's deadline, and no answer waits for a browser that hangs.

use std::{
    io,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{future::join_all, stream};
use nix::sys::signal::Signal;
use platen_harness::{process::Process, procfs, site::Reply, wait};
use platen_shared::{job::RenderJob, wire};
use reqwest::Body;
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{
    Shared, TOKEN,
    farm_process::{FarmProcess, HeldPage, PROGRAM, have_ended},
    full_page_png, green_if, html, of, pdf, png, program, send,
    site::Site,
    status_and_code, to, url, waiting,
};

tests! {
    "a job without time for a render is refused" => no_time_left,
    "a job without its body by its deadline is refused" => incomplete_body,
    "a farm that was stopped starts no job that is late" => stopped_farm,
    "an answer does not wait for a browser that hangs" => hanging_browser,
    "an answer does not wait for a browser that hangs at its start" => hanging_start,
    "a farm that starts refuses connections" => starting_farm,
    "jobs whose scripts never end are answered at their deadlines, and others beside them" => endless,
    "a job is not rendered again in real time without the time for its wait" => no_real_time,
    "a job that is cancelled before its page starts has not run" => cancelled_job,
    "a job is refused when the queue is full, and when it has waited for its time" => full_queue,
}

const DEADLINE_MS: u64 = 3_000;

async fn no_time_left(_: Arc<Shared>) {
    let (farm, site) = (FarmProcess::start(&["--browsers", "1"]).await, Site::start().await);
    let page = url(&site.put("/late", Reply::page("x")));
    for deadline_ms in [0, 1, 19] {
        let (status, body) = send(&farm, &page, deadline_ms).await;
        let refusal = String::from_utf8_lossy(&body);
        assert!(status == 503 && refusal.contains("no_slot_in_time"), "{deadline_ms} ms: {status} {refusal}");
    }
    assert_eq!(site.hits("/late"), 0);
    farm.end().await;
}

async fn incomplete_body(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let never = Body::wrap_stream(stream::pending::<io::Result<Vec<u8>>>());
    let job = farm.post(&html("x")).body(never).header(wire::DEADLINE_MS, 500);
    assert_eq!(status_and_code(job.send().await.unwrap()).await, (503, "no_slot_in_time".to_owned()));
    assert_eq!(farm.metric("platen_farm_slots_busy").await, 0);
    farm.end().await;
}

/// The farm is stopped while a job runs and another one waits, until the deadline of the second has passed.
async fn stopped_farm(_: Arc<Shared>) {
    let held = HeldPage::start(&[]).await;
    let (site, farm) = (Site::start().await, &held.farm);
    let running = held.post();
    held.until_loading(1).await;
    let late = url(&site.put("/late", Reply::page("x")));
    let late = farm.post(&late).header(wire::DEADLINE_MS, DEADLINE_MS);
    let late = tokio::spawn(late.send());
    farm.until_metric("platen_farm_queue_length", 1).await;
    farm.signal(Signal::SIGSTOP);
    // The time that is tested.
    tokio::time::sleep(Duration::from_millis(DEADLINE_MS)).await;
    // When the farm continues, the first job ends and the second is late.
    running.abort();
    farm.signal(Signal::SIGCONT);
    let refused = status_and_code(late.await.unwrap().unwrap()).await;
    assert_eq!(refused, (503, "no_slot_in_time".to_owned()));
    assert_eq!(site.hits("/late"), 0);
    held.farm.end().await;
}

/// While a page loads, waits, is scrolled and is printed: it requests `/now` then.
async fn hanging_browser(_: Arc<Shared>) {
    let load = "<img src='/now'>";
    let wait = "<script>new Worker('data:,'); onload = () => setTimeout(() => fetch('/now'), 100)</script>";
    let scroll = "<p style='height:3000px'><script>onscroll = () => fetch('/now')</script>";
    let print = "<script>onbeforeprint = () => document.body.append(Object.assign(new Image(), { src: '/now' }))</script>";
    let phases =
        [(load, png(), 0.0), (wait, png(), 10_000.0), (scroll, full_page_png(), 0.0), (print, pdf(), 0.0)];
    let phases = phases.map(|(page, output, wait_ms)| async move {
        let (farm, site) = (FarmProcess::start(&["--browsers", "1"]).await, Site::start().await);
        site.put("/now", Reply::never());
        let page = url(&site.put("/page", Reply::page(format!("<!doctype html>x{page}"))));
        let job = farm.post(&to(output, waiting(page, wait_ms))).header(wire::DEADLINE_MS, 3 * DEADLINE_MS);
        let job = tokio::spawn(job.send());
        site.until_hits("/now", 1).await;
        let browser = farm.browser().await;
        browser.signal(Signal::SIGSTOP).unwrap();
        let refused = status_and_code(job.await.unwrap().unwrap()).await;
        assert_eq!(refused, (504, "deadline".to_owned()));
        // It has 10 s to close the page, which the answer did not wait for.
        assert!(browser.is_alive());
        assert_eq!(farm.metric("platen_farm_slots_busy").await, 1);
        browser.signal(Signal::SIGCONT).unwrap();
        farm.until_metric("platen_farm_slots_busy", 0).await;
        farm.file(&html("x")).await;
        farm.end().await;
    });
    join_all(phases).await;
}

async fn hanging_start(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let first = farm.browser().await;
    first.signal(Signal::SIGKILL).unwrap();
    let next = async || Ok(procfs::browsers(farm.pid()).into_iter().find(|browser| browser.pid != first.pid));
    let next = wait::until_some("another browser starts", next).await.unwrap();
    next.signal(Signal::SIGSTOP).unwrap();
    let (status, refusal) = send(&farm, &html("x"), DEADLINE_MS).await;
    let refusal = String::from_utf8_lossy(&refusal);
    assert!(status == 503 && refusal.contains("no_slot_in_time"), "{status} {refusal}");
    assert!(next.is_alive());
    next.signal(Signal::SIGCONT).unwrap();
    farm.file(&html("x")).await;
    farm.end().await;
}

/// A client that connects before the farm is ready would wait for as long as its browsers take to start.
async fn starting_farm(_: Arc<Shared>) {
    let directory = FarmProcess::directory();
    let chromium =
        program(&directory.path().join("chromium"), "#!/bin/sh\n[ \"$1\" = --version ] || exec sleep 1000\n");
    let reserved = TcpSocket::new_v4().unwrap();
    reserved.set_reuseaddr(true).unwrap();
    reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = reserved.local_addr().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["--listen", &address.to_string(), "--browsers", "1", "--chromium"]).arg(chromium);
    command.env("PLATEN_FARM_TOKEN", TOKEN).env("TMPDIR", directory.path());
    let mut farm = Process::start("platen-farm", &command, Signal::SIGTERM).unwrap();
    let is_starting =
        || procfs::descendants(farm.pid()).iter().any(|it| it.command_line().starts_with("sleep 1000"));
    wait::until("a browser is started", is_starting).await.unwrap();
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let processes = procfs::descendants(farm.pid());
    farm.signal(Signal::SIGTERM).unwrap();
    assert!(farm.ended().await.unwrap().success());
    have_ended(&processes).await;
}

/// Loops in the page, in workers, in frames of the same and of another site, and in a resource that never comes.
async fn endless(_: Arc<Shared>) {
    const LOOP: &str = "<script>while (true);</script>";
    let (farm, site) = (FarmProcess::start(&["--browsers", "2"]).await, Site::start().await);
    let (elsewhere, never) = (site.elsewhere(&Site::markup(LOOP)), site.at("/never"));
    let pages = [
        LOOP,
        "<script>for (let i = 0; i < 20; i++) new Worker('data:text/javascript,for (;;);')</script>",
        &format!("<iframe srcdoc='{LOOP}'></iframe>"),
        &format!("<iframe src='{elsewhere}'></iframe>"),
        "<script>onload = () => setTimeout(() => { while (true); })</script>",
        "<script>(function f() { Promise.resolve().then(f) })()</script>",
        "<script>while (true) alert(1)</script>",
        "<script>onbeforeunload = onpagehide = () => { while (true); }; while (true);</script>",
        "<script>function f(d) { let i = d.createElement('iframe'); d.documentElement.append(i); f(i.contentDocument) }\
         setInterval(() => { try { f(document) } catch {} }); onload = () => { while (true) f(document) }</script>",
        &format!("<img src='{never}'>"),
        &format!("<script src='{never}'></script>"),
    ];
    let mut jobs = pages.map(|page| waiting(html(page), 10_000.0)).to_vec();
    jobs.push(url(&never));
    let is_late = async |account: &str, job: &RenderJob| {
        let begun = Instant::now();
        let (status, body) = send(&farm, &of(account, job.clone()), DEADLINE_MS).await;
        let refusal = (status, String::from_utf8_lossy(&body).into_owned());
        assert_eq!(refusal, (504, r#"{"code":"deadline"}"#.to_owned()), "{}", json!(job));
        // A browser that hangs is killed later than that.
        assert!(begun.elapsed() < Duration::from_millis(DEADLINE_MS * 3), "{:?}", begun.elapsed());
    };
    for pair in jobs.chunks(2) {
        // A browser that still closes the page of the job before has no slot for this one.
        farm.until_metric("platen_farm_slots_busy", 0).await;
        let good = async {
            farm.until_metric("platen_farm_slots_busy", 2).await;
            for _ in 0..5 {
                farm.expect_green(&of("good", html(&green_if("true")))).await;
            }
        };
        tokio::join!(is_late("one", &pair[0]), is_late("two", &pair[1]), good);
    }
    farm.end().await;
}

/// The script never ends once the page is in virtual time, and in real time its wait is longer than its deadline.
async fn no_real_time(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let page = "<script>setInterval(() => { const begun = Date.now(); while (Date.now() === begun); }, 600)</script>";
    let (status, refusal) = send(&farm, &waiting(html(page), 10_000.0), 9_000).await;
    assert_eq!((status, String::from_utf8_lossy(&refusal).contains("deadline")), (504, true));
    assert_eq!(farm.metric("platen_farm_real_time_retries_total").await, 0);
    farm.end().await;
}

/// It has a slot, and its browser does not open a page.
async fn cancelled_job(_: Arc<Shared>) {
    let (farm, site) = (FarmProcess::start(&["--browsers", "1"]).await, Site::start().await);
    farm.file(&html("x")).await;
    // A job keeps its slot after its answer, until its page is reset.
    farm.until_metric("platen_farm_slots_busy", 0).await;
    let browser = farm.browser().await;
    browser.signal(Signal::SIGSTOP).unwrap();
    let page = url(&site.put("/page", Reply::page("x")));
    let job = tokio::spawn(farm.post(&page).send());
    farm.until_metric("platen_farm_slots_busy", 1).await;
    job.abort();
    farm.until_metric("platen_farm_jobs_total{outcome=\"client_disconnected\"}", 1).await;
    browser.signal(Signal::SIGCONT).unwrap();
    farm.until_metric("platen_farm_slots_busy", 0).await;
    assert_eq!(site.hits("/page"), 0);
    farm.file(&html("x")).await;
    farm.end().await;
}

async fn full_queue(_: Arc<Shared>) {
    let held = HeldPage::start(&["--queue", "1", "--queue-timeout", "5"]).await;
    let farm = &held.farm;
    let running = held.post();
    held.until_loading(1).await;
    let queued = held.post();
    farm.until_metric("platen_farm_queue_length", 1).await;
    let refused = farm.post(&held.job).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "5");
    assert_eq!(status_and_code(refused).await, (503, "queue_full".to_owned()));
    let refused = queued.await.unwrap().unwrap();
    assert_eq!(refused.headers()["retry-after"], "5");
    assert_eq!(status_and_code(refused).await, (503, "no_slot_in_time".to_owned()));
    held.latch.open();
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    held.farm.end().await;
}
