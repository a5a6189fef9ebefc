//! The frames and the time of one page during one job.
//!
//! Invariant: while a step of the job is waited for, the page has frames: its animation callbacks,
//! observers, transitions and lazy images go on. In a browser that draws by itself there is nothing to
//! do.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        animation::SetPlaybackRateParams,
        emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy},
        headless_experimental::{BeginFrameParams, ScreenshotParams},
        page::CreateIsolatedWorldParams,
    },
    js_protocol::runtime::{EvaluateParams, ExecutionContextId},
};
use platen_cdp::{CdpError, Reply, Session};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    JobError,
    load_state::LoadState,
    stall::{MAX_FRAME_CPU, MAX_STEP_CPU, StallMeter},
    stillness,
    virtual_time::VirtualTimeDriver,
};
use crate::{
    begin_frames::{BeginFrames, FrameTime, monotonic_now},
    browser::Browser,
};

/// The time between two frames of a 60 Hz display.
const FRAME_DURATION: Duration = Duration::from_micros(16_700);
/// A page loads without frames at first, so how many it has had, and how far its animations are, does not
/// depend on how fast the machine is. One that still waits for its resources then gets frames, as a
/// browser would have shown it by this time.
const FRAMELESS_LOAD: Duration = Duration::from_millis(500);
/// After this much a page gets frames whatever it waits for.
const MAX_FRAMELESS_LOAD: Duration = Duration::from_secs(3);
/// How long a step may take without frames and time.
const HEAD_START: Duration = Duration::from_millis(50);
/// How long a capture is waited for after each frame: two are enough on a machine that is idle.
const FRAME_PAUSE: Duration = Duration::from_millis(4);
/// Frames after which a capture is given time as well.
const FRAMES_WITHOUT_TIME: u32 = 500;

/// What a job does with the frames and the time of its page.
pub(super) struct Rendering<'a> {
    browser: &'a Browser,
    pub(super) session: &'a Session,
    pub(super) main_frame: &'a str,
    pub(super) state: watch::Receiver<LoadState>,
    /// The frames of a browser that draws on command.
    frames: Option<&'a mut BeginFrames>,
    in_virtual_time: bool,
    /// Animations stand still.
    holds_animations: bool,
    /// A drawn frame has changed the picture since the job began.
    has_drawn: bool,
    /// Requests up to this number were waited for long enough.
    pub(super) given_up: u64,
    /// The isolated world of a document, and the document's number.
    world: Option<(u32, ExecutionContextId)>,
    /// Number of the document in which `virtual_time` has a script.
    pub(super) kept_alive: Option<u32>,
}

impl<'a> Rendering<'a> {
    pub(super) fn new(
        browser: &'a Browser,
        session: &'a Session,
        main_frame: &'a str,
        frames: Option<&'a mut BeginFrames>,
        state: watch::Receiver<LoadState>,
    ) -> Self {
        Self {
            browser,
            session,
            main_frame,
            state,
            frames,
            in_virtual_time: false,
            holds_animations: false,
            has_drawn: false,
            given_up: 0,
            world: None,
            kept_alive: None,
        }
    }

    /// Whether frames are drawn on command.
    pub(super) fn draws_on_command(&self) -> bool {
        self.frames.is_some()
    }

    /// Whether the page was put into virtual time.
    pub(super) fn is_in_virtual_time(&self) -> bool {
        self.in_virtual_time
    }

    /// Whether a frame of this job has changed the picture.
    pub(super) fn has_drawn(&self) -> bool {
        self.has_drawn
    }

    /// A watch on one step of the page in virtual time.
    pub(super) fn stall_meter(&self) -> StallMeter<'a> {
        StallMeter::new(self.browser, MAX_STEP_CPU)
    }

    /// CPU time that the page's browser has taken.
    pub(super) fn cpu_time(&self) -> Duration {
        self.browser.cpu_time()
    }

    /// How far the page has loaded.
    pub(super) fn load_state(&self) -> LoadState {
        *self.state.borrow()
    }

    /// Time of the latest frame, in milliseconds of Chromium's monotonic clock.
    pub(super) fn latest_frame(&self) -> f64 {
        self.frames.as_ref().map_or(0.0, |frames| frames.latest())
    }

    /// Counts the time of frames from the beginning of the page's document, in milliseconds of Chromium's
    /// monotonic clock.
    pub(super) fn count_frames_from(&mut self, origin: f64) {
        if origin.is_finite() {
            self.frames.iter_mut().for_each(|frames| frames.count_from(origin));
        }
    }

    /// Stops the clock of the page's animations and transitions.
    pub(super) fn hold_animations(&mut self) -> Result<(), CdpError> {
        self.holds_animations = true;
        self.session.send(&SetPlaybackRateParams::new(0.0))
    }

    /// Lets animations go on, in this page and in the ones that are loaded into it.
    pub(super) fn release_animations(&mut self) -> Result<(), CdpError> {
        if std::mem::take(&mut self.holds_animations) {
            self.session.send(&SetPlaybackRateParams::new(1.0))?;
        }
        Ok(())
    }

    /// Stops the page's clock, for good: from now on it is granted its time.
    pub(super) async fn enter_virtual_time(&mut self) -> Result<(), JobError> {
        self.in_virtual_time = true;
        let pause = SetVirtualTimePolicyParams::new(VirtualTimePolicy::Pause);
        let clock = self.session.call(&pause).await?.virtual_time_ticks_base;
        self.frames.iter_mut().for_each(|frames| frames.enter_virtual_time(clock));
        Ok(())
    }

    /// Waits in real time until the next frame is due, so many milliseconds after the latest one, and
    /// runs it. One that is late carries the time at which it was due.
    pub(super) async fn due_frame(&mut self, after: f64, drawn: bool) -> Result<(), JobError> {
        let left = self.latest_frame() + after - monotonic_now();
        sleep(Duration::try_from_secs_f64(left / 1_000.0).unwrap_or_default()).await;
        self.frame(FrameTime::After(after), drawn).await.map(drop)
    }

    /// Runs a frame; true if it was drawn and changed the picture. One that is not drawn runs all that a
    /// page does in a frame, down to its layout.
    pub(super) async fn frame(&mut self, time: FrameTime, drawn: bool) -> Result<bool, JobError> {
        let frame = BeginFrameParams { no_display_updates: (!drawn).then_some(true), ..Default::default() };
        let reply = self.begin_frame(time, frame).await?;
        let damaged = drawn && reply.parse::<Damage>()?.damaged;
        self.has_drawn |= damaged;
        Ok(damaged)
    }

    /// Draws a frame and captures it; `None` where Chromium gives a frame without its picture.
    pub(super) async fn screenshot(&mut self, shot: ScreenshotParams) -> Result<Option<Bytes>, JobError> {
        let frame = BeginFrameParams { screenshot: Some(shot), ..Default::default() };
        Ok(self.begin_frame(FrameTime::After(0.0), frame).await?.into_file()?)
    }

    /// Draws a frame at the page's present time.
    pub(super) async fn draw(&mut self) -> Result<(), JobError> {
        self.frame(FrameTime::After(0.0), true).await.map(drop)
    }

    async fn begin_frame(&mut self, time: FrameTime, frame: BeginFrameParams) -> Result<Reply, JobError> {
        let stall = StallMeter::new(self.browser, MAX_FRAME_CPU);
        let frames = self.frames.as_mut().ok_or(JobError::NoFile)?;
        let frame = frames.begin(self.session, time, frame);
        if self.in_virtual_time { stall.watch(frame).await } else { Ok(frame.await?) }
    }

    /// Waits for something that the page's main thread does, as long as it takes in real time.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page is in virtual time and does not get to it.
    pub(super) async fn done_by_page<T>(
        &self,
        done: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        if self.in_virtual_time { self.stall_meter().watch(done).await } else { Ok(done.await?) }
    }

    /// Runs frames until a page is loaded by `step`, as often as a display does while the page waits for
    /// its resources.
    pub(super) async fn frames_while_loading<T>(
        &mut self,
        step: impl Future<Output = Result<T, JobError>>,
    ) -> Result<T, JobError> {
        if !self.draws_on_command() {
            return step.await;
        }
        let begun = Instant::now();
        let frames = async {
            loop {
                sleep(FRAME_DURATION).await;
                let requests = self.load_state().requests > 0;
                let frameless = if requests { FRAMELESS_LOAD } else { MAX_FRAMELESS_LOAD };
                if begun.elapsed() >= frameless
                    && let Err(error) = self.frame(FrameTime::Now, true).await
                {
                    return error;
                }
            }
        };
        tokio::select! {
            biased;
            done = step => done,
            error = frames => Err(error),
        }
    }

    /// Gives the page frames and time until `step` is done, which waits for what the page does. One that
    /// waits for nothing is done before, or how far the page is would depend on the machine.
    pub(super) async fn frames_during<T>(
        &mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        if !self.draws_on_command() {
            return Ok(step.await?);
        }
        tokio::pin!(step);
        let head_start = async {
            sleep(HEAD_START).await;
            // Answered when the page's main thread has done what it does now.
            let _ = self.done_by_page(stillness::metrics(self.session)).await;
        };
        tokio::select! {
            biased;
            done = &mut step => return Ok(done?),
            () = head_start => {}
        }
        if self.in_virtual_time {
            return VirtualTimeDriver::start(self).await?.pass_during(step).await;
        }
        let frames = async {
            let mut next = Instant::now() + FRAME_DURATION;
            loop {
                sleep_until(next).await;
                if let Err(error) = self.frame(FrameTime::Now, true).await {
                    return error;
                }
                next = Instant::now().max(next) + FRAME_DURATION;
            }
        };
        tokio::select! {
            biased;
            done = step => Ok(done?),
            error = frames => Err(error),
        }
    }

    /// Whether the page is loading something that is drawn, and that was not waited for long enough.
    pub(super) fn is_loading_drawn(&self) -> bool {
        self.load_state().is_loading_drawn(self.given_up)
    }

    /// What the page is loading now is not waited for any longer.
    pub(super) fn give_up_drawn(&mut self) {
        self.given_up = self.load_state().sent;
    }

    /// A world for scripts in the page's main document, which shares nothing with the page's but the
    /// document. None if the page has just navigated.
    async fn isolated_world(&mut self) -> Result<Option<ExecutionContextId>, JobError> {
        let document = self.load_state().documents;
        if let Some((of, world)) = self.world
            && of == document
        {
            return Ok(Some(world));
        }
        let world = CreateIsolatedWorldParams::new(self.main_frame.to_owned());
        match self.done_by_page(self.session.call(&world)).await {
            Ok(world) => {
                self.world = Some((document, world.execution_context_id));
                Ok(Some(world.execution_context_id))
            }
            Err(JobError::Cdp(CdpError::Refused { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a script in an isolated world and returns its value; none if it has none, or if the document
    /// is gone.
    pub(super) async fn evaluate_isolated(&mut self, script: &str) -> Result<Option<Value>, JobError> {
        let Some(world) = self.isolated_world().await? else { return Ok(None) };
        let mut evaluate = EvaluateParams::new(script);
        evaluate.context_id = Some(world);
        match self.done_by_page(self.session.call(&evaluate)).await {
            Ok(answer) => Ok(answer.result.value),
            Err(JobError::Cdp(CdpError::Refused { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Draws one frame after the other until `step` is done, which waits for nothing else.
    pub(super) async fn draw_during<T>(
        &mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        if !self.draws_on_command() {
            return Ok(step.await?);
        }
        tokio::pin!(step);
        for _ in 0..FRAMES_WITHOUT_TIME {
            tokio::select! {
                biased;
                done = &mut step => return Ok(done?),
                // How many there are depends on the machine.
                drawn = self.frame(FrameTime::Same, true) => drawn.map(drop)?,
            }
            // The fewer there are, the less the time of the last depends on the machine.
            if let Ok(done) = timeout(FRAME_PAUSE, &mut step).await {
                return Ok(done?);
            }
        }
        self.frames_during(step).await
    }
}

#[derive(Deserialize)]
struct Damage {
    #[serde(rename = "hasDamage")]
    damaged: bool,
}
