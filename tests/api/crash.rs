//! Browsers that crash or pages that never finish: the client gets a file, a 502 or a 504, the next render succeeds,
//! and no process is left.

use anyhow::bail;
use nix::sys::signal::Signal;
use platen_harness::{
    procfs::ProcessId,
    site::{self, Reply, Site},
};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("crash/browser_killed_in_mid_render", browser_killed),
        Case::own_server("crash/page_that_never_finishes", page_that_never_finishes),
        Case::own_server("crash/page_that_exhausts_its_renderer", page_that_crashes),
        Case::own_server("crash/client_disconnects", client_disconnects).not_on_spin(NO_DISCONNECTS),
        Case::own_server("crash/farm_killed_leaves_no_browser", farm_killed),
    ]
}

/// wasmtime-wasi-http, which Spin uses, does not notify a component of it.
pub(crate) const NO_DISCONNECTS: &str = "no signal of disconnected clients";

const SMALL: (u32, u32) = (30, 20);

async fn renders(target: &Target) -> Result<()> {
    let html = "<html style='background:rgb(0,128,0)'></html>";
    let answer = target.render(&json!({ "html": html, "width": SMALL.0, "height": SMALL.1 })).send().await?;
    let picture = Picture::decode(answer.file("image/png")?, "image/png")?;
    picture.expect(SMALL.0 - 1, SMALL.1 - 1, GREEN)
}

pub(crate) async fn have_ended(processes: &[ProcessId]) -> Result<()> {
    wait::until("the processes end", || !processes.iter().any(ProcessId::is_alive)).await
}

/// A server, and a page whose render waits until a latch is open.
pub(crate) struct HeldRender {
    pub(crate) app: TestApp,
    pub(crate) target: Target,
    pub(crate) account: String,
    pub(crate) latch: Latch,
    pub(crate) url: String,
    site: Site,
}

impl HeldRender {
    pub(crate) async fn start(stage: &Stage, options: Options) -> Result<Self> {
        let site = Site::start().await?;
        let app = stage.start(&options.resolving(site::HOST)).await?;
        let (account, target) = app.account(Quota::Of(10)).await?;
        renders(&target).await?;
        let latch = Latch::closed();
        site.put("/held.png", Reply::of("image/png", Picture::png_of(GREEN, 40, 30)?).behind(&latch));
        let page = "<body style='margin:0'><img src='/held.png' style='display:block'></body>";
        let url = site.put("/held", Reply::page(page));
        Ok(Self { app, target, account: account.id, latch, url, site })
    }

    /// Waits until a render has requested the image behind the latch.
    pub(crate) async fn until_loading(&self) -> Result<()> {
        self.site.until_hits("/held.png", 1).await
    }
}

async fn browser_killed(stage: Stage) -> Result<()> {
    let held = HeldRender::start(&stage, Options::own_farm(stage.deployment)).await?;
    let before = procfs::descendants(held.app.farm_process().pid());
    let browsers = procfs::browsers(held.app.farm_process().pid());
    ensure!(!browsers.is_empty(), "no browser runs below the farm");
    let render =
        tokio::spawn(held.target.render(&json!({ "url": held.url, "width": 40, "height": 30 })).send());
    held.until_loading().await?;
    for browser in &browsers {
        browser.signal(Signal::SIGKILL)?;
    }
    // The render may have been tried again and then needs the image.
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
    have_ended(&browsers).await?;
    let attempts = held.app.operator.attempts(&held.account).await?;
    ensure!(attempts == 5, "one before, the interrupted one, three after: {attempts}");
    let all: Vec<ProcessId> =
        before.into_iter().chain(procfs::descendants(held.app.farm_process().pid())).collect();
    drop(held);
    have_ended(&all).await.context("after the server was stopped")
}

async fn page_that_never_finishes(stage: Stage) -> Result<()> {
    let app = stage.start(&Options::own_farm(stage.deployment).deadline_ms(4_000)).await?;
    let (account, target) = app.account(Quota::Of(10)).await?;
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

/// Renders until it succeeds: a farm that replaces a browser may be busy.
async fn eventually_renders(target: &Target) -> Result<()> {
    wait::until_some("a render succeeds", async || Ok(renders(target).await.ok())).await
}

async fn page_that_crashes(stage: Stage) -> Result<()> {
    let app = stage.start(&Options::own_farm(stage.deployment).deadline_ms(4_000)).await?;
    let (account, target) = app.account(Quota::Of(10)).await?;
    // Frames that contain themselves without end make a renderer give up. Every possible answer is one of the
    // contract.
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

/// A client that disconnects frees the only slot, although its page never loads. A job that waited for a slot is not
/// counted.
async fn client_disconnects(stage: Stage) -> Result<()> {
    let options = Options::own_farm(stage.deployment);
    let held = HeldRender::start(&stage, options).await?;
    let render = tokio::spawn(held.target.render(&json!({ "url": held.url })).send());
    held.until_loading().await?;
    let queued = tokio::spawn(held.target.minimal().send());
    held.app.until_metric("platen_farm_queue_length", 1).await?;
    queued.abort();
    let _ = queued.await;
    held.app.until_metric("platen_farm_queue_length", 0).await?;
    ensure!(held.app.metric("platen_farm_slots_busy").await? == 1, "the first job does not continue");
    render.abort();
    let _ = render.await;
    renders(&held.target).await?;
    // Not by its deadline, which would free the slot too.
    held.app.until_metric("platen_farm_jobs_total{outcome=\"client_disconnected\"}", 2).await?;
    // The one before, the aborted one that ran, and the last.
    let are_counted = async || Ok(held.app.operator.attempts(&held.account).await? == 3);
    wait::until_true("three attempts are counted", are_counted).await
}

/// The farm of `platen up` is killed with the server.
async fn farm_killed(stage: Stage) -> Result<()> {
    let mut held = HeldRender::start(&stage, Options::own_farm(stage.deployment)).await?;
    let render = tokio::spawn(held.target.render(&json!({ "url": held.url })).send());
    held.until_loading().await?;
    let below = procfs::descendants(held.app.farm_process().pid());
    ensure!(!procfs::browsers(held.app.farm_process().pid()).is_empty(), "no browser runs below the farm");
    held.app.kill_farm().await?;
    match render.await? {
        Ok(answer) if held.app.has_farm_process() => answer.error(502, "The renderer failed")?,
        Ok(answer) => bail!("an answer from a killed server: {}", answer.summary()),
        Err(_) => {}
    }
    have_ended(&below).await
}
