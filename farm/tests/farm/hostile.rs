//! Pages that attack the farm, pages that end themselves, and pages whose events are large or many.

use std::{sync::Arc, time::Duration};

use platen_harness::procfs;
use platen_shared::refusal::Refusal;

use crate::support::{
    GREEN, Shared, colour, farm_process::FarmProcess, green_if, html, site::Site, url, waiting,
};

tests! {
    "popups are not opened" => popups,
    "a page that ends its own load is refused or rendered" => endings,
    "the events of a page do not fill the memory of the farm" => event_memory,
}

async fn popups(shared: Arc<Shared>) {
    // Pages of other tests request unknown paths of theirs.
    let site = Site::start().await;
    let popup = site.at("/forbidden");
    let page = green_if(&format!("window.open('{popup}') === null"));
    let page = format!(
        "{page}<a id=a target=_blank href='{popup}'></a><form id=f target=_blank action='{popup}'></form><script>a.click(); f.submit()</script>"
    );
    shared.expect_green(&html(&page)).await;
    assert_eq!(site.forbidden_requests(), 0);
}

async fn endings(shared: Arc<Shared>) {
    let site = &shared.site;
    let host = || "page.test".to_owned();
    let unnamed = || "the page's destination".to_owned();
    let refresh = |url: &str| format!("<meta http-equiv=refresh content='0;url={url}'>x");
    // Each is refused long before the deadline.
    let limit = Duration::from_mins(5);
    for (name, mut job, refusal) in [
        ("close", html("<script>close()</script>"), Refusal::PageClosed),
        (
            "print and close",
            html("x<script>onload = () => { print(); close() }</script>"),
            Refusal::PageClosed,
        ),
        ("stop", html("<script>stop()</script>x"), Refusal::LoadStopped),
        (
            "stop with a picture",
            html(&format!("<img src='{}'><script>stop()</script>", site.at("/never"))),
            Refusal::LoadStopped,
        ),
        ("broken off", url(&site.at("/broken")), Refusal::ConnectionFailed { host: host() }),
        (
            "refresh to a closed port",
            html(&refresh(&site.closed())),
            Refusal::ConnectionRefused { host: host() },
        ),
        (
            "refresh to no name",
            html(&refresh("http://nowhere.invalid/")),
            Refusal::NameNotFound { host: "nowhere.invalid".to_owned() },
        ),
        ("refresh to no TLS", html(&refresh(&site.without_tls())), Refusal::Tls { host: host() }),
    ] {
        if name.starts_with("refresh") || name.starts_with("print") {
            job = waiting(job, 2_000.0);
        }
        let outcome = shared.farm.render(&job, limit).await.map(drop);
        match (outcome, refusal) {
            // The name server of the machine may not answer.
            (Err(Refusal::NameServerFailed), Refusal::NameNotFound { .. }) => {}
            (Err(Refusal::NameNotFound { host }), Refusal::NameNotFound { .. }) => {
                assert!(["nowhere.invalid", &unnamed()].contains(&host.as_str()), "{host}");
            }
            (outcome, refusal) => assert_eq!(outcome, Err(refusal), "{name}"),
        }
    }
    shared.farm.render(&html("<script>document.open()</script>"), limit).await.unwrap();
}

/// Less than two copies of one of the texts below; a farm needs about ten for a picture.
const MAX_GROWTH_BYTES: u64 = 60_000_000;

async fn event_memory(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let _ = farm.file(&html("x")).await;
    for (name, script) in [
        ("fetch", "fetch('data:,' + text).then(green)"),
        ("image", "Object.assign(new Image(), { src: 'data:image/png,' + text, onerror: green })"),
        (
            "style sheet",
            "document.head.append(Object.assign(document.createElement('link'), \
            { rel: 'stylesheet', href: 'data:text/css,' + text, onload: green, onerror: green }))",
        ),
        ("dialog", "alert(text); green()"),
        ("request headers", "fetch('data:,', { headers: { x: text } }).then(green, green)"),
        ("error", "setTimeout(green); throw text"),
        (
            "frames",
            "let n = 0; const frame = document.createElement('iframe'); document.body.append(frame); \
            frame.onload = () => { if (n++ < 20) frame.src = 'data:text/html,<!--' + n + text.slice(0, 2e6) }; \
            onload = () => setTimeout(() => { frame.src = 'about:blank'; green() })",
        ),
        (
            "many frames",
            "for (let n = 0; n < 8; ++n) document.body.append(Object.assign(\
            document.createElement('iframe'), { src: 'data:text/html,<!--' + n + text.slice(0, 2e6) })); green()",
        ),
    ] {
        procfs::reset_peak_memory(farm.pid()).unwrap();
        let before = procfs::memory(farm.pid(), "VmHWM").unwrap();
        let page = format!(
            "<!doctype html><html style='background:red'><body><script>const text = 'x'.repeat(4e7);\
             const green = () => document.documentElement.style.background = 'green';{script}</script>"
        );
        let response = farm.post(&waiting(html(&page), 500.0)).send().await.unwrap();
        // On a busy machine a page reaches its deadline; it has made its events as well.
        if response.status() != 504 {
            assert_eq!(response.status(), 200, "{name}");
            assert_eq!(colour(&response.bytes().await.unwrap()), GREEN, "{name}");
        }
        // The kernel's counter of a core is added up late, so that it may be less than before.
        let growth = procfs::memory(farm.pid(), "VmHWM").unwrap().saturating_sub(before);
        assert!(growth < MAX_GROWTH_BYTES, "{name}: {growth} bytes");
    }
    farm.end().await;
}
