//! Pages that are waited for: in virtual time they come to the state that a browser which draws by
//! itself, in real time, shows to somebody patient.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures::{StreamExt as _, stream};
use platen_farm::{Farm, Rendered};
use platen_shared::{format::WaitUntil, job::RenderJob};

use crate::{
    Test,
    support::{GREEN, PATIENCE, Shared, colour, farm, html, program::Program},
};

pub(crate) const TESTS: &[Test] = &[
    ("pages that are waited for look as they would in real time", |s| Box::pin(as_in_real_time(s))),
    ("waiting takes no time where nothing else does", |s| Box::pin(virtual_time(s))),
    ("the time of a page begins with its job", |s| Box::pin(own_time(s))),
];

/// What every page of `patience/` begins with. `done` says that it has come to its end, `bar` shows
/// something of the way.
const HEAD: &str = "<!doctype html><html style='background:red'><style>\
    body{margin:0;font:16px sans-serif} .box{width:40px;height:40px;background:blue}</style><body>\
    <script>const done = () => document.documentElement.style.background = 'green';\
    const sleep = time => new Promise(then => setTimeout(then, time));\
    const bar = width => document.body.insertAdjacentHTML('beforeend',\
    `<div style='height:4px;margin:1px;background:navy;width:${Math.round(width)}px'></div>`)</script>";

/// Several times what any of the pages needs, for slow machines.
const WAIT: f64 = 3_000.0;
/// For the machine that is slower still.
const MORE: f64 = 10_000.0;

/// Every page, in order of its name.
fn pages(shared: &Shared) -> Vec<(String, RenderJob)> {
    let site = shared.site.at("");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/farm/patience");
    let mut pages: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let markup = fs::read_to_string(&path).unwrap();
            let markup = markup
                .replace("{site}", &site)
                .replace("{socket}", &site.replace("http:", "ws:"))
                .replace("{elsewhere}", &shared.site.elsewhere(""));
            let mut job = html(&format!("{HEAD}{markup}"));
            job.wait_for_timeout = WAIT.try_into().unwrap();
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
        config.warm_pages = 0;
    })
    .await;
    let pages = pages(&shared);
    let (mut real, ours) = tokio::join!(render(&plain, &pages, 6), render(&shared.farm, &pages, 2));
    for ((_, job), real) in pages.iter().zip(&mut real) {
        if corner(real) != GREEN {
            // This machine has other things to do, and real time does not wait.
            let mut job = job.clone();
            job.wait_for_timeout = MORE.try_into().unwrap();
            *real = plain.render(&job, PATIENCE).await.unwrap();
        }
    }
    plain.shutdown().await;
    assert!(pages.len() >= 40);
    let mut wrong = Vec::new();
    for ((name, _), (real, ours)) in pages.iter().zip(real.iter().zip(&ours)) {
        if pixels(real) != pixels(ours) || corner(ours) != GREEN {
            wrong.push((name, corner(real), corner(ours)));
        }
    }
    assert!(wrong.is_empty(), "page, ground in real time, ground in virtual time: {wrong:?}");
}

async fn render(farm: &Farm, pages: &[(String, RenderJob)], at_once: usize) -> Vec<Rendered> {
    let jobs = pages.iter().map(|(_, job)| async { farm.render(job, PATIENCE).await.unwrap() });
    stream::iter(jobs).buffered(at_once).collect().await
}

/// The usual browser without what makes it draw on demand.
fn draws_by_itself(directory: &Path) -> PathBuf {
    let script = "#!/bin/sh\n\
        for a; do shift; [ \"$a\" = --enable-begin-frame-control ] || set -- \"$@\" \"$a\"; done\n\
        for b in /usr/lib/chromium/chromium-headless-shell /opt/google/chrome/chrome; do\n\
        [ ! -x \"$b\" ] || exec \"$b\" \"$@\"; done\n";
    let path = directory.join("chromium");
    fs::write(&path, script).unwrap();
    for path in [directory, &path] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    path
}

fn pixels(file: &Rendered) -> Vec<u8> {
    image::load_from_memory(&file.bytes).unwrap().to_rgb8().into_raw()
}

/// The colour of the ground, where no page has anything else.
fn corner(file: &Rendered) -> [u8; 3] {
    let image = image::load_from_memory(&file.bytes).unwrap().to_rgb8();
    image.get_pixel(image.width() - 1, 0).0
}

async fn virtual_time(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let waits = async |time| program.metric(&format!("platen_farm_waits_total{{time=\"{time}\"}}")).await;
    let mut quiet = html("<!doctype html><html style='background:green'>");
    (quiet.wait_until, quiet.wait_for_timeout) = (WaitUntil::NetworkIdle, 10_000.0.try_into().unwrap());
    assert_eq!(program.post(&quiet).send().await.unwrap().status(), 200);
    assert_eq!((waits("skipped").await, waits("virtual").await, waits("real").await), (1, 0, 0));
    let mut scripted = html("<!doctype html><script>setTimeout(() => 0, 5000)</script>");
    scripted.wait_for_timeout = 10_000.0.try_into().unwrap();
    assert_eq!(program.post(&scripted).send().await.unwrap().status(), 200);
    assert_eq!((waits("skipped").await, waits("virtual").await, waits("real").await), (1, 1, 0));
    // Neither a frame nor a timer can tell a worker's time.
    for company in ["new Worker('data:text/javascript,')", "new WebSocket('ws://127.0.0.1:1')"] {
        let mut page = html(&format!("<script>{company}</script>"));
        page.wait_for_timeout = 500.0.try_into().unwrap();
        let begun = Instant::now();
        assert_eq!(program.post(&page).send().await.unwrap().status(), 200);
        assert!(begun.elapsed() >= Duration::from_millis(500), "{company}");
    }
    assert_eq!((waits("virtual").await, waits("real").await), (1, 2));
    // A page whose messages never end has its clock moved on all the same.
    let mut starving = html(
        "<!doctype html><script>const c = new MessageChannel, send = () => c.port2.postMessage(0);\
         c.port1.onmessage = send; send();\
         setTimeout(() => document.documentElement.style.background = 'green', 1000)</script>",
    );
    starving.wait_for_timeout = 2_000.0.try_into().unwrap();
    let file = program.post(&starving).send().await.unwrap();
    assert_eq!(colour(&file.bytes().await.unwrap()), GREEN);
    program.end().await;
}

async fn own_time(_: Arc<Shared>) {
    let program = Program::start(&["--browsers", "1"]).await;
    let warm = async || program.metric("platen_farm_pages_total{source=\"warm\"}").await;
    for (number, age) in [0, 0, 0, 2_000, 0].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(age)).await;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        // The page's time begins with its job, for a page that is used again as for one opened ahead.
        let page = format!(
            "<!doctype html><html style='background:red'><script>\
             const begun = {now} - 50, near = time => time > begun && time < begun + 120000;\
             const dates = near(Date.now()) && near(performance.timeOrigin);\
             requestAnimationFrame(time => {{\
               const frame = near(performance.timeOrigin + time) && time <= performance.now() + 1;\
               document.documentElement.style.background = dates && frame ? 'green' : 'red' }})</script>"
        );
        let file = program.post(&html(&page)).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(colour(&file), GREEN, "job {number}");
        // The first leaves no page, as a second job was not to be expected.
        assert_eq!(warm().await, u64::try_from(number).unwrap().saturating_sub(1), "job {number}");
    }
    // A page that was in virtual time has no other job.
    let mut long = html("<script>setTimeout(() => 0, 100)</script>");
    long.wait_for_timeout = 500.0.try_into().unwrap();
    assert_eq!(program.post(&long).send().await.unwrap().status(), 200);
    let before = warm().await;
    assert_eq!(program.post(&html("x")).send().await.unwrap().status(), 200);
    assert_eq!(warm().await, before);
    program.end().await;
}
