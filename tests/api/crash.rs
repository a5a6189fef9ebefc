//! Browsers that die or never finish: the caller gets a file or a 502 or a 504, the next render
//! works, and no process is left.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use platen_tests::{
    app::{Options, TestApp},
    case::Case,
    client::Target,
    image_file::{GREEN, Picture},
    operator::Quota,
    procfs::{self, ProcessId},
    site::{self, Latch, Reply, Site},
    suite::Stage,
};
use serde_json::json;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("crash/browser_killed_in_mid_render", browser_killed),
        Case::own_server("crash/page_that_never_finishes", page_that_never_finishes),
        Case::own_server("crash/page_that_eats_its_renderer", page_that_crashes),
        Case::own_server("crash/caller_hangs_up", caller_hangs_up),
        Case::own_server("crash/server_killed_leaves_no_browser", server_killed),
    ]
}

const SMALL: (u32, u32) = (30, 20);

async fn renders(target: &Target) -> Result<()> {
    let html = "<html style='background:rgb(0,128,0)'></html>";
    let answer = target.render(&json!({ "html": html, "width": SMALL.0, "height": SMALL.1 })).send().await?;
    let picture = Picture::decode(answer.file("image/png")?, "image/png")?;
    picture.expect(SMALL.0 - 1, SMALL.1 - 1, GREEN)
}

/// Waits for processes to be gone; fails only if they stay for long.
pub(crate) async fn are_gone(processes: &[ProcessId]) -> Result<()> {
    let started = Instant::now();
    loop {
        let left: Vec<u32> = processes.iter().filter(|process| process.is_alive()).map(|it| it.pid).collect();
        if left.is_empty() {
            return Ok(());
        }
        if started.elapsed() > Duration::from_mins(1) {
            bail!("processes {left:?} are left");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A server with a page on which a render hangs until the latch is opened.
pub(crate) struct Held {
    pub(crate) app: TestApp,
    pub(crate) target: Target,
    pub(crate) account: String,
    pub(crate) latch: Latch,
    pub(crate) url: String,
    site: Site,
}

impl Held {
    pub(crate) async fn start(stage: &Stage, options: Options) -> Result<Self> {
        let site = Site::start().await?;
        let app = stage.start(&options.resolving(site::HOST)).await?;
        let account = app.operator.account(Quota::Of(10)).await?;
        let target = app.target(&account);
        renders(&target).await?;
        let latch = Latch::closed();
        site.put("/held.png", Reply::of("image/png", Picture::png_of(GREEN, 40, 30)?).behind(&latch));
        let page = "<body style='margin:0'><img src='/held.png' style='display:block'></body>";
        let url = site.put("/held", Reply::page(page));
        Ok(Self { app, target, account: account.id, latch, url, site })
    }

    /// Returns once a render has come as far as the image that does not come.
    pub(crate) async fn reached(&self) {
        while self.site.hits("/held.png") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn browser_killed(stage: Stage) -> Result<()> {
    let held = Held::start(&stage, Options::own_farm(stage.database)).await?;
    let before = procfs::descendants(held.app.process.pid());
    let browsers = procfs::browsers(held.app.process.pid());
    ensure!(!browsers.is_empty(), "no browser runs below the server");
    let render =
        tokio::spawn(held.target.render(&json!({ "url": held.url, "width": 40, "height": 30 })).send());
    held.reached().await;
    for browser in &browsers {
        kill(Pid::from_raw(browser.pid.cast_signed()), Signal::SIGKILL)?;
    }
    // It may have been tried again elsewhere, where the image comes now.
    held.latch.open();
    let answer = render.await??;
    if answer.status == 200 {
        let picture = Picture::decode(answer.file("image/png")?, "image/png")?;
        picture.expect(39, 29, GREEN)?;
    } else {
        answer.error(502, "The renderer failed")?;
    }
    for _ in 0..3 {
        renders(&held.target).await.context("after the browser was killed")?;
    }
    are_gone(&browsers).await?;
    let attempts = held.app.operator.attempts(&held.account).await?;
    ensure!(attempts == 5, "one before, one in the middle, three after: {attempts}");
    let all: Vec<ProcessId> = before.into_iter().chain(procfs::descendants(held.app.process.pid())).collect();
    drop(held);
    are_gone(&all).await.context("after the server was stopped")
}

async fn page_that_never_finishes(stage: Stage) -> Result<()> {
    let app = stage.start(&Options::own_farm(stage.database).deadline_ms(4_000)).await?;
    let account = app.operator.account(Quota::Of(10)).await?;
    let target = app.target(&account);
    for html in [
        "<script>while (true) {}</script>",
        "<script>setTimeout(function f() { while (true) {} }, 0)</script>",
    ] {
        let answer = target.render(&json!({ "html": html, "waitForTimeout": 500 })).send().await?;
        answer.error(504, "The render did not finish in time").context(html)?;
    }
    ensure!(app.operator.attempts(&account.id).await? == 2, "a 504 counts");
    eventually_renders(&target).await
}

/// A farm that has to replace a browser may be busy for a moment.
async fn eventually_renders(target: &Target) -> Result<()> {
    let started = Instant::now();
    loop {
        let error = match renders(target).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if started.elapsed() > Duration::from_mins(1) {
            return Err(error.context("no render works any more"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn page_that_crashes(stage: Stage) -> Result<()> {
    let app = stage.start(&Options::own_farm(stage.database).deadline_ms(4_000)).await?;
    let account = app.operator.account(Quota::Of(10)).await?;
    let target = app.target(&account);
    // A frame of itself within itself, without end, is what a renderer gives up on; whatever it
    // does with it, it says so in words of the contract.
    let html = "<body><script>
        const frame = document.createElement('iframe');
        frame.srcdoc = document.documentElement.outerHTML;
        document.body.append(frame);</script></body>";
    let answer = target.render(&json!({ "html": html })).send().await?;
    match answer.status {
        200 => drop(answer.file("image/png")?),
        422 => {
            let crashed = answer.error(422, "The page crashed while it was rendered");
            crashed.or_else(|_| answer.error(422, "The page stopped loading before it was complete"))?;
        }
        502 => answer.error(502, "The renderer failed")?,
        _ => answer.error(504, "The render did not finish in time")?,
    }
    ensure!(app.operator.attempts(&account.id).await? == 1, "the attempt was not counted once");
    eventually_renders(&target).await
}

/// A caller that is gone frees its slot: there is one slot, and the next caller gets it although
/// the first page never loads. One that was still waiting for a slot is not counted.
async fn caller_hangs_up(stage: Stage) -> Result<()> {
    let options = Options::own_farm(stage.database);
    let held = Held::start(&stage, options).await?;
    let render = tokio::spawn(held.target.render(&json!({ "url": held.url })).send());
    held.reached().await;
    let queued = tokio::spawn(held.target.render(&json!({ "html": "x" })).send());
    reaches(&held.app, "platen_farm_queue_length", 1.0).await?;
    queued.abort();
    let _ = queued.await;
    reaches(&held.app, "platen_farm_queue_length", 0.0).await?;
    ensure!(held.app.metric("platen_farm_slots_busy").await? > 0.5, "the first one goes on");
    render.abort();
    let _ = render.await;
    renders(&held.target).await?;
    // The first one's deadline would have freed the slot as well, in the end.
    reaches(&held.app, "platen_farm_jobs_total{outcome=\"client_disconnected\"}", 2.0).await?;
    let began = Instant::now();
    loop {
        let attempts = held.app.operator.attempts(&held.account).await?;
        if attempts == 3 {
            break;
        }
        ensure!(
            began.elapsed() < Duration::from_mins(1),
            "one before, one that ran, one after it: {attempts}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn reaches(app: &TestApp, metric: &str, value: f64) -> Result<()> {
    let began = Instant::now();
    while (app.metric(metric).await.unwrap_or(-1.0) - value).abs() > 0.5 {
        ensure!(began.elapsed() < Duration::from_mins(1), "{metric} does not become {value}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn server_killed(stage: Stage) -> Result<()> {
    let mut held = Held::start(&stage, Options::own_farm(stage.database)).await?;
    let render = tokio::spawn(held.target.render(&json!({ "url": held.url })).send());
    held.reached().await;
    let below = procfs::descendants(held.app.process.pid());
    ensure!(!procfs::browsers(held.app.process.pid()).is_empty(), "no browser runs below the server");
    held.app.process.signal(Signal::SIGKILL)?;
    held.app.process.ended().await?;
    ensure!(render.await?.is_err(), "an answer from a server that is gone");
    are_gone(&below).await
}
