//! Pages whose `load` event comes late, never, or beside something that fails.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use platen_harness::site::Reply;

use crate::support::{GREEN_PAGE, Shared, farm_process::FarmProcess, html, send, site::Site, url, waiting};

tests! {
    "a document that a script keeps open is waited for" => kept_open,
    "a frame that is never closed takes the time of its job" => never_closed,
    "a worker without a script does not end its page" => no_worker_script,
}

/// Pages in frames and the page itself, by markup and by URL: each is green once it has loaded, seconds after its scripts have run.
async fn kept_open(shared: Arc<Shared>) {
    let site = &shared.site;
    let frame = "<iframe id=f></iframe><script>const inner = f.contentDocument; inner.write('x');\
        setTimeout(() => inner.close(), 3000)</script>";
    let picture = site.at("/late.svg");
    let latest = Reply::of("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    let latest = site.put("/latest.svg", latest.after(Duration::from_secs(5)));
    // The new document waits for the picture of the one before.
    let opened = |picture: &str, close: &str| {
        format!(
            "<img src='{picture}'><script>setTimeout(() => {{ document.open(); document.write(`<script>\
             onload = () => document.documentElement.style.background = 'green'</scr` + `ipt>x`); {close} }})</script>"
        )
    };
    let pages = [
        frame.to_owned(),
        format!("<iframe srcdoc=\"{frame}\"></iframe>"),
        format!("<iframe sandbox='allow-scripts allow-same-origin' srcdoc=\"{frame}\"></iframe>"),
        frame.replace("'x'", &format!("`<img src='{picture}'>`")),
        format!("<video src='data:video/mp4;base64,AAAA'></video>{frame}"),
        opened(&picture, "setTimeout(() => document.close(), 3000)"),
        opened(&latest, "document.close()"),
    ];
    let jobs = pages.iter().flat_map(|content| {
        let page = format!(
            "<!doctype html><html style='background:red'><body><script>\
             onload = () => document.documentElement.style.background = 'green'</script>{content}"
        );
        [html(&page), url(&site.at(&Site::markup(&page)))]
    });
    let jobs: Vec<_> = jobs.collect();
    join_all(jobs.iter().map(|job| shared.expect_green(job))).await;
}

async fn never_closed(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let page = html("<iframe id=f></iframe><script>f.contentDocument.write('x')</script>");
    let (status, refusal) = send(&farm, &page, 6_000).await;
    assert_eq!((status, String::from_utf8_lossy(&refusal).as_ref()), (504, r#"{"code":"deadline"}"#));
    farm.end().await;
}

async fn no_worker_script(shared: Arc<Shared>) {
    let site = &shared.site;
    let wrong_type = site.put("/wrong.js", Reply::of("image/png", "x"));
    for script in [&site.at("/status/404"), &site.closed(), &wrong_type] {
        for worker in ["Worker", "SharedWorker"] {
            let page = format!("{GREEN_PAGE}<script>try {{ new {worker}('{script}') }} catch {{}}</script>");
            let page = url(&site.at(&Site::markup(&page)));
            shared.expect_green(&page).await;
            shared.expect_green(&waiting(page, 300.0)).await;
        }
    }
}
