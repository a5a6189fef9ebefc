//! A tab of the browser: the commands that load, draw and capture a page.
//!
//! Invariant: a browser draws one frame at a time, because two at once crash its GPU process.

use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Error, Result, bail};
use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        emulation::SetDeviceMetricsOverrideParams,
        headless_experimental::{BeginFrameParams, ScreenshotParams},
        page::{
            EnableParams, EventLoadEventFired, GetLayoutMetricsParams, NavigateParams, PrintToPdfParams,
            SetDocumentContentParams,
        },
        target::{AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams},
    },
    js_protocol::runtime::EvaluateParams,
};
use platen_cdp::{Connection, Event, Events, Reply, Session};
use tokio::sync::Mutex;

use super::Job;

/// The interval of frames at 60 Hz, in whole milliseconds.
pub(super) const FRAME_INTERVAL_MS: f64 = 16.0;
/// Frames after which a screenshot is given up: the first ones after a navigation may have none.
const MAX_SCREENSHOT_FRAMES: u32 = 10;
const A4_INCHES: (f64, f64) = (8.27, 11.69);

static BEGIN_FRAME_LOCK: LazyLock<Mutex<()>> = LazyLock::new(|| Mutex::new(()));

/// A tab in a browser context of its own.
pub(super) struct Tab {
    pub(super) session: Session,
    events: Events,
    main_frame: String,
    size: (u32, u32),
}

impl Tab {
    pub(super) async fn open(connection: &Arc<Connection>) -> Result<Self> {
        let context = connection.call(&CreateBrowserContextParams::default()).await?;
        let mut target = CreateTargetParams::new("about:blank");
        target.browser_context_id = Some(context.browser_context_id);
        target.enable_begin_frame_control = Some(true);
        let target = connection.call(&target).await?.target_id;
        // The main frame has the id of its target.
        let main_frame = target.inner().clone();
        let mut attach = AttachToTargetParams::new(target);
        attach.flatten = Some(true);
        let session = connection.call(&attach).await?.session_id;
        let (session, events) = Session::new(Arc::clone(connection), session);
        session.call(&EnableParams::default()).await?;
        Ok(Self { session, events, main_frame, size: (0, 0) })
    }

    /// Waits for an event.
    pub(super) async fn wait(&mut self, mut is_last: impl FnMut(&Event) -> bool) -> Result<()> {
        loop {
            let event = self.events.next().await.context("the browser is gone")?;
            if is_last(&event) {
                return Ok(());
            }
        }
    }

    /// Discards the events of what has been loaded so far.
    fn discard_events(&mut self) {
        while self.events.try_next().is_some() {}
    }

    pub(super) async fn set_size(&mut self, width: u32, height: u32) -> Result<()> {
        if self.size != (width, height) {
            let metrics = SetDeviceMetricsOverrideParams::new(width, height, 1.0, false);
            self.session.call(&metrics).await?;
            self.size = (width, height);
        }
        Ok(())
    }

    /// Loads an empty document with a new realm.
    pub(super) async fn load_blank(&mut self) -> Result<()> {
        self.discard_events();
        self.session.call(&NavigateParams::new("about:blank")).await?;
        self.wait(Event::is::<EventLoadEventFired>).await?;
        self.session.call(&EvaluateParams::new("window.name=''")).await?;
        Ok(())
    }

    /// Starts to load the page of a job.
    pub(super) async fn deliver(&mut self, job: &Job) -> Result<()> {
        self.discard_events();
        match (&job.html, &job.url) {
            (Some(html), _) => {
                let content = SetDocumentContentParams::new(self.main_frame.clone(), html.as_str());
                self.session.call(&content).await?;
            }
            (None, Some(url)) => drop(self.session.call(&NavigateParams::new(url.as_str())).await?),
            (None, None) => bail!("the job has neither html nor url"),
        }
        Ok(())
    }

    /// Loads the page of a job in real time.
    pub(super) async fn load(&mut self, job: &Job) -> Result<()> {
        if job.html.is_some() {
            self.load_blank().await?;
        }
        self.deliver(job).await?;
        self.wait(Event::is::<EventLoadEventFired>).await
    }

    /// The file of a job. `time` is that of its frames in virtual time.
    pub(super) async fn capture(&mut self, job: &Job, time: Option<f64>) -> Result<Bytes> {
        if job.format == "pdf" {
            let (width, height) = A4_INCHES;
            let print = PrintToPdfParams {
                print_background: Some(job.print_background),
                paper_width: Some(width),
                paper_height: Some(height),
                generate_tagged_pdf: Some(false),
                generate_document_outline: Some(false),
                ..Default::default()
            };
            let reply = self.session.start(&print)?.reply().await?;
            return reply.into_file()?.context("the PDF is empty");
        }
        if job.full_page {
            let metrics = self.session.call(&GetLayoutMetricsParams {}).await?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
            let height = metrics.css_content_size.height as u32;
            self.set_size(job.width, height).await?;
        }
        let screenshot = ScreenshotParams {
            format: Some(job.format.parse().map_err(Error::msg)?),
            optimize_for_speed: Some(true),
            ..Default::default()
        };
        for _ in 0..MAX_SCREENSHOT_FRAMES {
            if let Some(file) = self.begin_frame(time, Some(screenshot.clone())).await?.into_file()? {
                return Ok(file);
            }
        }
        bail!("{MAX_SCREENSHOT_FRAMES} frames have no screenshot")
    }

    /// Draws one frame at `time`, in milliseconds of the page's clock. Without a time it is drawn at once.
    pub(super) async fn begin_frame(
        &self,
        time: Option<f64>,
        screenshot: Option<ScreenshotParams>,
    ) -> Result<Reply> {
        let interval = time.map(|_| FRAME_INTERVAL_MS);
        let frame = BeginFrameParams { frame_time_ticks: time, interval, screenshot, ..Default::default() };
        let _one_at_a_time = BEGIN_FRAME_LOCK.lock().await;
        Ok(self.session.start(&frame)?.reply().await?)
    }
}
