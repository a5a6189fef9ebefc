//! A page that is used again: the fewest commands that render a job on it.
//!
//! Invariant: one job at a time a page, one frame at a time a browser, because two at once end its
//! GPU process.

use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::{Mutex, broadcast::Receiver};

use super::{
    Job,
    cdp::{Connection, Event, SessionId},
    clock::{Clock, FRAME_MS},
};

/// The browser's frames, one at a time.
static FRAMES: LazyLock<Mutex<()>> = LazyLock::new(|| Mutex::new(()));

/// One job's place.
pub(super) struct Page {
    connection: Arc<Connection>,
    /// For jobs that wait for nothing but `load`, in real time.
    plain: Tab,
    /// For the others, in virtual time, which a page cannot leave again.
    virtual_time: Option<(Tab, Option<Clock>)>,
}

/// A tab of the browser.
pub(super) struct Tab {
    connection: Arc<Connection>,
    session: SessionId,
    frame: String,
    size: (u32, u32),
}

impl Page {
    /// Opens one in a context of its own.
    pub(super) async fn open(connection: &Arc<Connection>) -> Result<Self> {
        let plain = Tab::open(connection).await?;
        Ok(Self { connection: Arc::clone(connection), plain, virtual_time: None })
    }

    /// One in place of this.
    pub(super) async fn anew(&self) -> Result<Self> {
        Self::open(&self.connection).await
    }

    /// Renders a job.
    pub(super) async fn render(&mut self, job: &Job) -> Result<Bytes> {
        let settle = if job.wait_until == "networkidle" { 500 } else { 0 } + job.wait_for_timeout;
        if settle == 0 {
            self.plain.set_size(job.width, job.height).await?;
            self.plain.load(job).await?;
            return self.plain.capture(job, None).await;
        }
        let (tab, last) = match &mut self.virtual_time {
            Some(both) => both,
            none => none.insert((Tab::open(&self.connection).await?, None)),
        };
        tab.set_size(job.width, job.height).await?;
        let (clock, mut events) = tab.begin(job, last.take()).await?;
        let mut clock = clock.until_loaded(tab, &mut events).await?;
        clock.run(tab, &mut events, settle).await?;
        let file = tab.capture(job, Some(&clock)).await?;
        *last = Some(clock);
        Ok(file)
    }
}

impl Tab {
    async fn open(connection: &Arc<Connection>) -> Result<Self> {
        let browser = |method: &'static str, params: Value| async move {
            let reply = connection.call(None, method, &params).await?;
            anyhow::Ok(serde_json::from_str::<Value>(reply.get())?)
        };
        let context = &browser("Target.createBrowserContext", json!({})).await?["browserContextId"];
        let target =
            json!({ "url": "about:blank", "browserContextId": context, "enableBeginFrameControl": true });
        let target = &browser("Target.createTarget", target).await?["targetId"];
        let session =
            browser("Target.attachToTarget", json!({ "targetId": target, "flatten": true })).await?;
        let session = session["sessionId"].as_str().context("a session")?.into();
        // The main frame has the name of its target.
        let frame = target.as_str().context("a target")?.to_owned();
        let tab = Self { connection: Arc::clone(connection), session, frame, size: (0, 0) };
        tab.call("Page.enable", json!({})).await?;
        Ok(tab)
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Result<()> {
        self.connection.call(Some(&self.session), method, &params).await?;
        Ok(())
    }

    pub(super) async fn ask<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T> {
        let reply = self.connection.call(Some(&self.session), method, &params).await?;
        Ok(serde_json::from_str(reply.get())?)
    }

    /// Waits for an event of this tab.
    pub(super) async fn wait(&self, events: &mut Receiver<Event>, methods: &[&str]) -> Result<Arc<str>> {
        loop {
            let event = events.recv().await.context("the browser is gone")?;
            if event.session.as_ref() == Some(&self.session) && methods.contains(&&*event.method) {
                return Ok(event.method);
            }
        }
    }

    async fn set_size(&mut self, width: u32, height: u32) -> Result<()> {
        if self.size != (width, height) {
            let metrics =
                json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
            self.call("Emulation.setDeviceMetricsOverride", metrics).await?;
            self.size = (width, height);
        }
        Ok(())
    }

    /// A fresh document and realm.
    async fn blank(&self) -> Result<()> {
        let mut events = self.connection.events();
        self.call("Page.navigate", json!({ "url": "about:blank" })).await?;
        self.wait(&mut events, &[LOADED]).await?;
        self.call("Runtime.evaluate", json!({ "expression": "window.name=''" })).await
    }

    async fn deliver(&self, job: &Job) -> Result<()> {
        match (&job.html, &job.url) {
            (Some(html), _) => {
                self.call("Page.setDocumentContent", json!({ "frameId": self.frame, "html": html })).await
            }
            (None, Some(url)) => self.call("Page.navigate", json!({ "url": url })).await,
            (None, None) => bail!("neither html nor url"),
        }
    }

    async fn load(&self, job: &Job) -> Result<()> {
        if job.html.is_some() {
            self.blank().await?;
        }
        let mut events = self.connection.events();
        self.deliver(job).await?;
        self.wait(&mut events, &[LOADED]).await?;
        Ok(())
    }

    /// Stops the clock, then delivers.
    async fn begin(&self, job: &Job, last: Option<Clock>) -> Result<(Clock, Receiver<Event>)> {
        self.blank().await?;
        let clock = Clock::stop(self, last).await?;
        let events = self.connection.events();
        self.deliver(job).await?;
        Ok((clock, events))
    }

    async fn capture(&mut self, job: &Job, clock: Option<&Clock>) -> Result<Bytes> {
        #[derive(Deserialize)]
        struct File {
            data: String,
        }
        if job.format == "pdf" {
            let (width, height) = A4_INCHES;
            let options = json!({
                "printBackground": job.print_background, "paperWidth": width, "paperHeight": height,
                "generateTaggedPDF": false, "generateDocumentOutline": false,
            });
            let file: File = self.ask("Page.printToPDF", options).await?;
            return Ok(BASE64_STANDARD.decode(file.data)?.into());
        }
        if job.full_page {
            let metrics: Value = self.ask("Page.getLayoutMetrics", json!({})).await?;
            let height = metrics["cssContentSize"]["height"].as_u64().context("a height")?;
            self.set_size(job.width, height.try_into()?).await?;
        }
        let screenshot = json!({ "format": job.format, "optimizeForSpeed": job.fast_png });
        // The first frame behind a navigation may bring none.
        for _ in 0..10 {
            if let Some(data) = self.frame(clock, Some(&screenshot)).await?.screenshot_data {
                return Ok(BASE64_STANDARD.decode(data)?.into());
            }
        }
        bail!("no frame brings a screenshot")
    }

    /// Draws one frame.
    pub(super) async fn frame(&self, clock: Option<&Clock>, screenshot: Option<&Value>) -> Result<Frame> {
        let mut params = json!({});
        if let Some(clock) = clock {
            params["frameTimeTicks"] = clock.now().into();
            params["interval"] = FRAME_MS.into();
        }
        if let Some(screenshot) = screenshot {
            params["screenshot"] = screenshot.clone();
        }
        let _one_at_a_time = FRAMES.lock().await;
        self.ask("HeadlessExperimental.beginFrame", params).await
    }
}

/// What a frame brought.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame {
    /// Whether something is to be drawn anew.
    pub(super) has_damage: bool,
    screenshot_data: Option<String>,
}

/// The end of loading.
pub(super) const LOADED: &str = "Page.loadEventFired";
const A4_INCHES: (f64, f64) = (8.27, 11.69);
