//! What the steps of a job use of its page: its document and scripts, its frames and its time.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        animation::SetPlaybackRateParams,
        emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy},
        headless_experimental::{BeginFrameParams, BeginFrameReturns, ScreenshotParams},
    },
    js_protocol::runtime::{ExecutionContextId, GetIsolateIdParams, RemoteObjectId},
};
use platen_cdp::{CdpError, Reply, Session};
use platen_shared::job::RenderJob;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use super::{
    header_templates::HeaderTemplates,
    load_state::{LoadState, PageRecords},
    site::Site,
    stall::{MAX_STEP_CPU, StallMeter, watch_frame},
};
use crate::{
    begin_frames::{BeginFrames, FrameTime, monotonic_now_ms},
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

/// A job, and how it is rendered.
#[derive(Clone, Copy)]
pub(crate) struct JobContext<'a> {
    pub(crate) job: &'a RenderJob,
    /// The address of its markup, if that has one.
    pub(crate) site: Option<&'a Site<'a>>,
    pub(crate) egress: &'a Arc<JobEgress>,
    pub(crate) deadline: Instant,
    pub(crate) clock: Clock,
    pub(crate) phases: &'a Phases,
}

/// Access of the steps of a job to its page.
pub(super) struct Rendering<'a> {
    pub(super) job: &'a RenderJob,
    pub(super) deadline: Instant,
    pub(super) pooled: &'a Lease,
    pub(super) session: &'a Session,
    pub(super) main_frame: &'a str,
    pub(super) state: watch::Receiver<LoadState>,
    /// Requests up to this number are not waited for any more.
    pub(super) given_up: u64,
    pub(super) clock: PageClock<'a>,
    pub(super) scripts: PageScripts,
    pub(super) document: ShownDocument,
    pub(super) header: PrintedHeader,
    /// The page must not be used again.
    pub(super) must_close: bool,
}

/// The clock of the page, and its frames.
pub(super) struct PageClock<'a> {
    /// The begin-frame calls; `None` in a browser without begin-frame control.
    begin_frames: Option<&'a mut BeginFrames>,
    pub(super) in_virtual_time: bool,
    /// How waits may pass; in real time without begin-frame control.
    pub(super) mode: Clock,
    animations_paused: bool,
}

/// The scripts of the page.
pub(super) struct PageScripts {
    /// One has run, or may have.
    pub(super) ran: bool,
    /// They may run.
    pub(super) enabled: bool,
    /// Their CPU time before the job, in seconds.
    pub(super) time_before: f64,
    /// Those that Chromium has reported are among these.
    pub(super) records: Arc<PageRecords>,
}

/// The document that the page shows, and what of it the farm keeps. A document is named by its number.
pub(super) struct ShownDocument {
    /// A navigation to another one is waited for.
    pub(super) follows_navigation: bool,
    /// It does not run the callbacks that prove that the main thread has had a frame.
    pub(super) lacks_callbacks: bool,
    /// Number of drawn frames of this job that have changed the picture.
    pub(super) changes: u32,
    /// Its isolated world.
    pub(super) world: Option<(u32, ExecutionContextId)>,
    /// The object in it of the expression that is waited for.
    pub(super) function: Option<(u32, RemoteObjectId)>,
    /// The one that has the keep-alive script of `virtual_time`.
    pub(super) kept_alive: Option<u32>,
}

/// Header and footer of the job's PDF.
pub(super) struct PrintedHeader {
    pub(super) templates: Option<HeaderTemplates>,
    /// They are being printed.
    pub(super) is_printing: bool,
}

impl<'a> Rendering<'a> {
    pub(super) fn new(
        &JobContext { job, deadline, clock, .. }: &JobContext<'a>,
        pooled: &'a Lease,
        session: &'a Session,
        main_frame: &'a str,
        begin_frames: Option<&'a mut BeginFrames>,
        (state, records): (watch::Receiver<LoadState>, Arc<PageRecords>),
        (time_before, templates): (f64, Option<HeaderTemplates>),
    ) -> Self {
        let mode = if begin_frames.is_some() { clock } else { Clock::Real };
        let enabled = job.options.environment.java_script;
        Self {
            job,
            deadline,
            pooled,
            session,
            main_frame,
            state,
            given_up: 0,
            clock: PageClock { begin_frames, in_virtual_time: false, mode, animations_paused: false },
            scripts: PageScripts { ran: false, enabled, time_before, records },
            document: ShownDocument {
                follows_navigation: true,
                lacks_callbacks: false,
                changes: 0,
                world: None,
                function: None,
                kept_alive: None,
            },
            header: PrintedHeader { templates, is_printing: false },
            must_close: false,
        }
    }

    /// Whether the browser draws frames only on command.
    pub(super) fn has_begin_frame_control(&self) -> bool {
        self.clock.begin_frames.is_some()
    }

    pub(super) fn stall_meter(&self) -> StallMeter<'a> {
        StallMeter::new(&self.pooled.browser, MAX_STEP_CPU)
    }

    /// # Errors
    /// [`JobError::Navigates`] if the page is about to have another document, unless it has had enough of them.
    pub(super) fn check_navigation(&self) -> Result<(), JobError> {
        if self.document.follows_navigation && self.is_between_documents() {
            return Err(JobError::Navigates);
        }
        Ok(())
    }

    pub(super) fn is_between_documents(&self) -> bool {
        self.load_state().is_between_documents(self.job.options.wait_until)
    }

    /// Forgets what is known of the page's document, because there is another one.
    pub(super) fn forget_document(&mut self) {
        (self.document.changes, self.document.lacks_callbacks) = (0, false);
        self.header.is_printing = false;
    }

    pub(super) fn load_state(&self) -> LoadState {
        *self.state.borrow()
    }

    /// Counts the frame time from the start of the page's document, in milliseconds of Chromium's monotonic
    /// clock. Does nothing if it is not known.
    pub(super) fn count_frames_from(&mut self, origin_ms: f64) {
        if origin_ms.is_finite() {
            self.clock.begin_frames.iter_mut().for_each(|frames| frames.count_from(origin_ms));
        }
    }

    pub(super) fn pause_animations(&mut self) -> Result<(), CdpError> {
        self.clock.animations_paused = true;
        self.session.send(&SetPlaybackRateParams::new(0.0))
    }

    /// Resumes animations, which Chromium would otherwise pause in the next documents of the page as well.
    pub(super) fn resume_animations(&mut self) -> Result<(), CdpError> {
        if std::mem::take(&mut self.clock.animations_paused) {
            self.session.send(&SetPlaybackRateParams::new(1.0))?;
        }
        Ok(())
    }

    /// Resumes animations in virtual time, if they are paused. Chromium resumes them at the page's clock. While frames are behind
    /// that, the time of animations and of animation frames stands.
    pub(super) async fn resume_in_virtual_time(&mut self) -> Result<(), JobError> {
        if self.clock.animations_paused {
            let lag_ms = self.clock.begin_frames.as_mut().map_or(0.0, |frames| frames.catch_up());
            self.frame(FrameTime::After(lag_ms), false).await?;
            self.resume_animations()?;
        }
        Ok(())
    }

    /// Puts the page into virtual time, which advances only by grants.
    pub(super) async fn enter_virtual_time(&mut self) -> Result<(), JobError> {
        // A renderer cannot leave it.
        (self.clock.in_virtual_time, self.must_close) = (true, true);
        let pause = SetVirtualTimePolicyParams::new(VirtualTimePolicy::Pause);
        let clock_ms = self.session.call(&pause).await?.virtual_time_ticks_base;
        self.clock.begin_frames.iter_mut().for_each(|frames| frames.enter_virtual_time(clock_ms));
        Ok(())
    }

    /// Waits in real time until `after_ms` after the latest frame, and runs a frame with that frame time,
    /// even if it is late.
    pub(super) async fn due_frame(&mut self, after_ms: f64, drawn: bool) -> Result<(), JobError> {
        let latest_ms = self.clock.begin_frames.as_ref().map_or(0.0, |frames| frames.latest_ms());
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
        self.document.changes += u32::from(damaged);
        Ok(damaged)
    }

    /// Draws a frame and captures it; `None` if Chromium returns the frame without a picture.
    pub(super) async fn screenshot(&mut self, shot: ScreenshotParams) -> Result<Option<Bytes>, JobError> {
        let frame = BeginFrameParams { screenshot: Some(shot), ..Default::default() };
        Ok(self.begin_frame(FrameTime::After(0.0), frame).await?.into_file()?)
    }

    async fn begin_frame(&mut self, time: FrameTime, frame: BeginFrameParams) -> Result<Reply, JobError> {
        let stall = StallMeter::new(&self.pooled.browser, 3 * MAX_STEP_CPU);
        let frames = self.clock.begin_frames.as_mut().ok_or(JobError::NoFile)?;
        let frame = frames.begin(self.session, time, frame);
        if self.clock.in_virtual_time {
            stall.watch(frame).await
        } else {
            watch_frame(self.session, frame).await
        }
    }

    /// Waits for a reply of the page's main thread.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page is in virtual time and its main thread stalls.
    pub(super) async fn wait_for_page<T>(
        &self,
        reply: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        if self.clock.in_virtual_time { self.stall_meter().watch(reply).await } else { Ok(reply.await?) }
    }

    /// Waits for a reply as [`Self::wait_for_page`] does; `None` if the document is gone.
    pub(super) async fn reply<T>(
        &self,
        reply: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<Option<T>, JobError> {
        unless_refused(self.wait_for_page(reply).await)
    }

    /// Receives what the page's main thread has reported up to now, if it responds. The browser process sends the file of a
    /// capture, which may arrive before the renderer's report of a navigation that the capture has caused.
    pub(super) async fn receive_events(&self) {
        let response = self.stall_meter().watch(self.session.call(&GetIsolateIdParams {}));
        // The file is complete, whatever the page does now.
        drop(timeout_at(self.last_wait(), response).await);
    }
}

/// `None` if Chromium refused the command, because the document is gone.
pub(super) fn unless_refused<T>(reply: Result<T, impl Into<JobError>>) -> Result<Option<T>, JobError> {
    match reply.map_err(Into::into) {
        Ok(reply) => Ok(Some(reply)),
        Err(JobError::Cdp(CdpError::Refused { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
