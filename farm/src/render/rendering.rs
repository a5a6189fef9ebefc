//! The frames and the time of one page during one job, and the detection of a page that stalls: a frame that does not end,
//! or a step in virtual time.
//!
//! In virtual time a renderer's clock does not advance while a script runs, so a script that loops until a
//! time has passed never ends. It is detected by its CPU time, because the real time of a slow step depends
//! on the load of the machine.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        animation::SetPlaybackRateParams,
        emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy},
        headless_experimental::{BeginFrameParams, BeginFrameReturns, ScreenshotParams},
    },
    js_protocol::runtime::{EvaluateParams, ExecutionContextId, GetIsolateIdParams, RemoteObjectId},
};
use parking_lot::Mutex;
use platen_cdp::{CdpError, Reply, Session};
use platen_shared::job::RenderJob;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    JobContext,
    header_templates::HeaderTemplates,
    load_state::{LoadState, ParsedScripts},
};
use crate::{
    begin_frames::{BeginFrames, FrameTime, monotonic_now_ms},
    browser::{Browser, HANG_TIMEOUT},
    egress::JobEgress,
    error::JobError,
    job_progress::Phases,
    pool::Lease,
};

/// How a wait may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Skipped or in virtual time, if that gives the same file.
    Virtual,
    Real,
}

/// Access of the steps of a job to its page.
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct Rendering<'a> {
    pub(super) job: &'a RenderJob,
    pub(super) pooled: &'a Lease,
    pub(super) egress: &'a JobEgress,
    pub(super) phases: &'a Phases,
    pub(super) session: &'a Session,
    pub(super) main_frame: &'a str,
    pub(super) state: watch::Receiver<LoadState>,
    pub(super) scripts: Arc<Mutex<ParsedScripts>>,
    /// The begin-frame calls; `None` in a browser without begin-frame control.
    begin_frames: Option<&'a mut BeginFrames>,
    pub(super) in_virtual_time: bool,
    /// How waits may pass; in real time without begin-frame control.
    pub(super) clock: Clock,
    pub(super) deadline: Instant,
    /// CPU time of the page's scripts before the job, in seconds.
    pub(super) script_time_before: f64,
    /// How long a document is waited for after its milestone, in milliseconds.
    pub(super) wait_ms: f64,
    /// A script of the page has run, or may have.
    pub(super) script_ran: bool,
    pub(super) runs_scripts: bool,
    /// A navigation of the page is waited for.
    pub(super) follows_navigation: bool,
    /// The page does not run the callbacks that prove that its main thread has had a frame.
    pub(super) lacks_callbacks: bool,
    /// The page must not be used again.
    pub(super) must_close: bool,
    /// Header and footer of the job's PDF.
    pub(super) header_templates: Option<HeaderTemplates>,
    /// A header or footer is being printed.
    pub(super) prints_header: bool,
    animations_paused: bool,
    /// A drawn frame of this job has changed the picture.
    pub(super) has_drawn: bool,
    /// Requests up to this number are not waited for any more.
    pub(super) given_up: u64,
    /// The number of a document, and its isolated world.
    pub(super) world: Option<(u32, ExecutionContextId)>,
    /// The number of a document, and the object in it of the expression that is waited for.
    pub(super) function: Option<(u32, RemoteObjectId)>,
    /// Number of the document that has the keep-alive script of `virtual_time`.
    pub(super) kept_alive: Option<u32>,
}

impl<'a> Rendering<'a> {
    pub(super) fn new(
        &JobContext { job, egress, deadline, clock, phases }: &JobContext<'a>,
        pooled: &'a Lease,
        session: &'a Session,
        main_frame: &'a str,
        begin_frames: Option<&'a mut BeginFrames>,
        (state, scripts): (watch::Receiver<LoadState>, Arc<Mutex<ParsedScripts>>),
        (script_time_before, header_templates): (f64, Option<HeaderTemplates>),
    ) -> Self {
        let clock = if begin_frames.is_some() { clock } else { Clock::Real };
        Self {
            job,
            pooled,
            egress,
            phases,
            session,
            main_frame,
            state,
            scripts,
            begin_frames,
            in_virtual_time: false,
            clock,
            deadline,
            script_time_before,
            wait_ms: job.options.wait_for_timeout.get(),
            script_ran: false,
            runs_scripts: job.options.environment.java_script,
            follows_navigation: true,
            lacks_callbacks: false,
            must_close: false,
            header_templates,
            prints_header: false,
            animations_paused: false,
            has_drawn: false,
            given_up: 0,
            world: None,
            function: None,
            kept_alive: None,
        }
    }

    /// Whether the browser draws frames only on command.
    pub(super) fn has_begin_frame_control(&self) -> bool {
        self.begin_frames.is_some()
    }

    pub(super) fn stall_meter(&self) -> StallMeter<'a> {
        StallMeter::new(&self.pooled.browser, MAX_STEP_CPU)
    }

    /// # Errors
    /// [`JobError::Navigates`] if the page is about to have another document, unless it has had enough of them.
    pub(super) fn check_navigation(&self) -> Result<(), JobError> {
        if self.follows_navigation && self.is_between_documents() {
            return Err(JobError::Navigates);
        }
        Ok(())
    }

    pub(super) fn is_between_documents(&self) -> bool {
        self.load_state().is_between_documents(self.job.options.wait_until)
    }

    /// Forgets what is known of the page's document, because there is another one.
    pub(super) fn forget_document(&mut self) {
        (self.has_drawn, self.lacks_callbacks, self.prints_header) = (false, false, false);
    }

    pub(super) fn load_state(&self) -> LoadState {
        *self.state.borrow()
    }

    /// Counts the frame time from the start of the page's document, in milliseconds of Chromium's monotonic
    /// clock. Does nothing if it is not known.
    pub(super) fn count_frames_from(&mut self, origin_ms: f64) {
        if origin_ms.is_finite() {
            self.begin_frames.iter_mut().for_each(|frames| frames.count_from(origin_ms));
        }
    }

    pub(super) fn pause_animations(&mut self) -> Result<(), CdpError> {
        self.animations_paused = true;
        self.session.send(&SetPlaybackRateParams::new(0.0))
    }

    /// Resumes animations, which Chromium would otherwise pause in the next documents of the page as well.
    pub(super) fn resume_animations(&mut self) -> Result<(), CdpError> {
        if std::mem::take(&mut self.animations_paused) {
            self.session.send(&SetPlaybackRateParams::new(1.0))?;
        }
        Ok(())
    }

    /// Resumes animations in virtual time, if they are paused. Chromium resumes them at the page's clock. While frames are behind
    /// that, the time of animations and of animation frames stands.
    pub(super) async fn resume_in_virtual_time(&mut self) -> Result<(), JobError> {
        if self.animations_paused {
            let lag_ms = self.begin_frames.as_mut().map_or(0.0, |frames| frames.catch_up());
            self.frame(FrameTime::After(lag_ms), false).await?;
            self.resume_animations()?;
        }
        Ok(())
    }

    /// Puts the page into virtual time, which advances only by grants. A renderer cannot leave it.
    pub(super) async fn enter_virtual_time(&mut self) -> Result<(), JobError> {
        self.in_virtual_time = true;
        let pause = SetVirtualTimePolicyParams::new(VirtualTimePolicy::Pause);
        let clock_ms = self.session.call(&pause).await?.virtual_time_ticks_base;
        self.begin_frames.iter_mut().for_each(|frames| frames.enter_virtual_time(clock_ms));
        Ok(())
    }

    /// Waits in real time until `after_ms` after the latest frame, and runs a frame with that frame time,
    /// even if it is late.
    pub(super) async fn due_frame(&mut self, after_ms: f64, drawn: bool) -> Result<(), JobError> {
        let latest_ms = self.begin_frames.as_ref().map_or(0.0, |frames| frames.latest_ms());
        let left_ms = latest_ms + after_ms - monotonic_now_ms();
        sleep(Duration::try_from_secs_f64(left_ms / 1_000.0).unwrap_or_default()).await;
        self.frame(FrameTime::After(after_ms), drawn).await.map(drop)
    }

    /// Runs a frame; true if it was drawn and changed the picture. A frame that is not drawn runs the page's
    /// callbacks, style and layout.
    pub(super) async fn frame(&mut self, time: FrameTime, drawn: bool) -> Result<bool, JobError> {
        let frame = BeginFrameParams { no_display_updates: (!drawn).then_some(true), ..Default::default() };
        let reply = self.begin_frame(time, frame).await?;
        let damaged = drawn && reply.parse::<BeginFrameReturns>()?.has_damage;
        self.has_drawn |= damaged;
        Ok(damaged)
    }

    /// Draws a frame and captures it; `None` if Chromium returns the frame without a picture.
    pub(super) async fn screenshot(&mut self, shot: ScreenshotParams) -> Result<Option<Bytes>, JobError> {
        let frame = BeginFrameParams { screenshot: Some(shot), ..Default::default() };
        Ok(self.begin_frame(FrameTime::After(0.0), frame).await?.into_file()?)
    }

    async fn begin_frame(&mut self, time: FrameTime, frame: BeginFrameParams) -> Result<Reply, JobError> {
        let stall = StallMeter::new(&self.pooled.browser, 3 * MAX_STEP_CPU);
        let frames = self.begin_frames.as_mut().ok_or(JobError::NoFile)?;
        let frame = frames.begin(self.session, time, frame);
        if self.in_virtual_time { stall.watch(frame).await } else { watch_frame(self.session, frame).await }
    }

    /// Waits for a reply of the page's main thread.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page is in virtual time and its main thread stalls.
    pub(super) async fn wait_for_page<T>(
        &self,
        reply: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        if self.in_virtual_time { self.stall_meter().watch(reply).await } else { Ok(reply.await?) }
    }

    /// Receives what the page's main thread has reported up to now, if it responds. The browser process sends the file of a
    /// capture, which may arrive before the renderer's report of a navigation that the capture has caused.
    pub(super) async fn receive_events(&self) {
        let response = self.stall_meter().watch(self.session.call(&GetIsolateIdParams {}));
        // The file is complete, whatever the page does now.
        drop(timeout_at(self.last_wait(), response).await);
    }

    /// Whether a request for something that is drawn is in progress and still waited for.
    pub(super) fn is_loading_drawn(&self) -> bool {
        self.load_state().requests.is_loading_drawn(self.given_up)
    }

    /// Stops waiting for the requests that are in progress now.
    pub(super) fn give_up_drawn(&mut self) {
        self.given_up = self.load_state().requests.sent;
    }
}

/// How often a long step is checked.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// CPU time that a browser may take for one step of its page; three times as much for a frame, which may paint a large page.
const MAX_STEP_CPU: Duration = Duration::from_secs(2);

/// Measures one step of a page in virtual time.
pub(super) struct StallMeter<'a> {
    browser: &'a Browser,
    max_cpu: Duration,
    since: Instant,
    /// CPU time of the browser at the first check.
    cpu: Option<Duration>,
}

impl<'a> StallMeter<'a> {
    fn new(browser: &'a Browser, max_cpu: Duration) -> Self {
        Self { browser, max_cpu, since: Instant::now(), cpu: None }
    }

    /// Restarts the measurement, when the page waits for something outside.
    pub(super) fn reset(&mut self) {
        (self.since, self.cpu) = (Instant::now(), None);
    }

    /// Checks the step, which has failed after [`HANG_TIMEOUT`] whatever its CPU time; to be called every [`CHECK_INTERVAL`].
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page stalls in the step.
    pub(super) async fn check(&mut self) -> Result<(), JobError> {
        let cpu = self.browser.cpu_time().await;
        let taken = cpu.saturating_sub(*self.cpu.get_or_insert(cpu));
        if taken < self.max_cpu && self.since.elapsed() < HANG_TIMEOUT {
            return Ok(());
        }
        tracing::debug!(cpu = ?taken, time = ?self.since.elapsed(), "page stalls in virtual time");
        Err(JobError::NeedsRealTime)
    }

    pub(super) async fn watch<T>(
        mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        tokio::pin!(step);
        loop {
            match timeout(CHECK_INTERVAL, &mut step).await {
                Ok(done) => return Ok(done?),
                Err(_) => self.check().await?,
            }
        }
    }
}

/// Waits for a frame in real time. It may wait for the main thread, but not for the compositor alone.
///
/// # Errors
/// [`JobError::FrameStalled`] if the main thread responds and the frame does not end afterwards.
async fn watch_frame<T>(
    session: &Session,
    frame: impl Future<Output = Result<T, CdpError>>,
) -> Result<T, JobError> {
    tokio::pin!(frame);
    let response = async {
        sleep(CHECK_INTERVAL).await;
        session.call(&EvaluateParams::new("0")).await
    };
    tokio::select! {
        biased;
        done = &mut frame => return Ok(done?),
        responded = response => responded?,
    };
    match timeout(HANG_TIMEOUT, frame).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(JobError::FrameStalled),
    }
}
