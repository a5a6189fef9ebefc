//! Virtual time: pages reach the same state as in real time, in a browser that draws by itself, and waits take no time.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures::{StreamExt as _, stream};
use platen_farm::{Farm, Rendered};
use platen_harness::{image_file::Colour, wait::MAX_WAIT};
use platen_shared::{format::WaitUntil, job::RenderJob};

use crate::support::{
    GREEN, Shared, colour, farm, farm_process::FarmProcess, html, picture, program, waiting,
};

tests! {
    "pages look the same in virtual time and in real time" => as_in_real_time,
    "a wait takes virtual time if possible, and no time if nothing can change" => virtual_time,
    "the time origin of a page is that of its job" => own_time,
}

/// The beginning of every page of `virtual_time/`. `done` marks the end of its script, `bar` shows a step.
const HEAD: &str = "<!doctype html><html style='background:red'><style>\
    body{margin:0;font:16px sans-serif} .box{width:40px;height:40px;background:blue}</style><body>\
    <script>const done = () => document.documentElement.style.background = 'green';\
    const sleep = time => new Promise(then => setTimeout(then, time));\
    const bar = width => document.body.insertAdjacentHTML('beforeend',\
    `<div style='height:4px;margin:1px;background:navy;width:${Math.round(width)}px'></div>`)</script>";

/// The wait in milliseconds, several times what any of the pages needs.
const WAIT_MS: f64 = 3_000.0;
/// The wait in real time for a machine on which [`WAIT_MS`] is too short.
const LONG_WAIT_MS: f64 = 10_000.0;

/// Every page, in order of its name.
fn pages(shared: &Shared) -> Vec<(String, RenderJob)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/farm/virtual_time");
    let mut pages: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let markup = fs::read_to_string(&path).unwrap();
            let markup = shared.site.fill(&markup);
            let job = waiting(html(&format!("{HEAD}{markup}")), WAIT_MS);
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), job)
        })
        .collect();
    pages.sort_by(|(one, _), (other, _)| one.cmp(other));
    pages
}

async fn as_in_real_time(shared: Arc<Shared>) {
    let directory = tempfile::tempdir().unwrap();
    let plain = farm(|config| {
        config.chromium = Some(draws_by_itself(directory.path()));
        config.browsers = 6.try_into().ok();
        config.warm_memory = Some(0);
    })
    .await;
    let pages = pages(&shared);
    let (real, ours) = tokio::join!(render(&plain, &pages, 6), render(&shared.farm, &pages, 2));
    plain.shutdown().await;
    assert!(pages.len() >= 40);
    let mut wrong = Vec::new();
    for ((name, _), (real, ours)) in pages.iter().zip(real.iter().zip(&ours)) {
        if picture(&real.bytes) != picture(&ours.bytes) || corner(ours) != GREEN {
            wrong.push((name, corner(real), corner(ours)));
        }
    }
    assert!(wrong.is_empty(), "page, background in real time, background in virtual time: {wrong:?}");
}

async fn render(farm: &Farm, pages: &[(String, RenderJob)], at_once: usize) -> Vec<Rendered> {
    let jobs = pages.iter().map(|(_, job)| async {
        let begun = Instant::now();
        let file = farm.render(job, MAX_WAIT).await.unwrap();
        if corner(&file) == GREEN || begun.elapsed().as_secs_f64() * 1_000.0 < WAIT_MS {
            return file;
        }
        // On a busy machine the page was not done in real time.
        farm.render(&waiting(job.clone(), LONG_WAIT_MS), MAX_WAIT).await.unwrap()
    });
    stream::iter(jobs).buffered(at_once).collect().await
}

/// The usual browser without the switch that makes it draw on demand.
fn draws_by_itself(directory: &Path) -> PathBuf {
    let script = "#!/bin/sh\n\
        for a; do shift; [ \"$a\" = --run-all-compositor-stages-before-draw ] || set -- \"$@\" \"$a\"; done\n\
        for b in /usr/lib/chromium/chromium-headless-shell /opt/google/chrome/chrome; do\n\
        [ ! -x \"$b\" ] || exec \"$b\" \"$@\"; done\n";
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    program(&directory.join("chromium"), script)
}

/// The colour of the background, in a corner where no page has anything else.
fn corner(file: &Rendered) -> Colour {
    let image = picture(&file.bytes);
    image.get_pixel(image.width() - 1, 0).0
}

async fn virtual_time(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let mut quiet = waiting(html("<!doctype html><html style='background:green'>"), 10_000.0);
    quiet.options.wait_until = WaitUntil::NetworkIdle;
    farm.file(&quiet).await;
    assert_eq!(
        (farm.waits("skipped").await, farm.waits("virtual").await, farm.waits("real").await),
        (1, 0, 0)
    );
    for script in ["setTimeout(() => 0, 5000)", "0"] {
        let scripted = waiting(html(&format!("<!doctype html><script>{script}</script>")), 10_000.0);
        farm.file(&scripted).await;
    }
    assert_eq!(
        (farm.waits("skipped").await, farm.waits("virtual").await, farm.waits("real").await),
        (1, 2, 0)
    );
    // No virtual clock reaches a worker, a socket, playback, or work beside the main thread.
    let scripts = [
        "new Worker('data:text/javascript,')",
        "new WebSocket('ws://127.0.0.1:1')",
        "new Audio('data:audio/wav;base64,UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=')",
        "setTimeout(() => window.indexedDB?.databases())",
    ];
    for script in scripts {
        let page = waiting(html(&format!("<script>{script}</script>")), 500.0);
        let begun = Instant::now();
        farm.file(&page).await;
        assert!(begun.elapsed() >= Duration::from_millis(500), "{script}");
    }
    assert_eq!((farm.waits("virtual").await, farm.waits("real").await), (2, 4));
    // The clock advances even if the page sends itself messages without end.
    let starving = html(
        "<!doctype html><script>const c = new MessageChannel, send = () => c.port2.postMessage(0);\
         c.port1.onmessage = send; send();\
         setTimeout(() => document.documentElement.style.background = 'green', 300)</script>",
    );
    farm.expect_green(&waiting(starving, 600.0)).await;
    farm.end().await;
}

async fn own_time(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    for (number, age) in [0, 0, 0, 200, 0].into_iter().enumerate() {
        // Older than the tolerance of 50 ms, so that the time origin of an earlier job is not accepted.
        tokio::time::sleep(Duration::from_millis(age)).await;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        // For a reused page and for one that was opened in advance.
        let page = format!(
            "<!doctype html><html style='background:red'><script>\
             const begun = {now} - 50, near = time => time > begun && time < begun + 120000;\
             const dates = near(Date.now()) && near(performance.timeOrigin);\
             requestAnimationFrame(time => {{\
               const frame = near(performance.timeOrigin + time) && time <= performance.now() + 1;\
               document.documentElement.style.background = dates && frame ? 'green' : 'red' }})</script>"
        );
        assert_eq!(colour(&farm.file(&html(&page)).await), GREEN, "job {number}");
        // The first job leaves no page, because a second job is not expected.
        assert_eq!(farm.warm_pages().await, u64::try_from(number).unwrap().saturating_sub(1), "job {number}");
    }
    // A page that was in virtual time is not reused.
    let long = waiting(html("<script>setTimeout(() => 0, 100)</script>"), 500.0);
    farm.file(&long).await;
    let before = farm.warm_pages().await;
    farm.file(&html("x")).await;
    assert_eq!(farm.warm_pages().await, before);
    farm.end().await;
}
