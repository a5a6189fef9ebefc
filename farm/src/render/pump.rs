//! The frames and the time a page lives on, where nothing is drawn unasked.
//!
//! Invariant: whatever a page does with frames (animation callbacks, observers, transitions, lazy
//! pictures) goes on while one of its steps is waited for, and a page with a [`Clock`] of its own gets
//! its time from here alone: as fast as the real one while its steps or the network are waited for,
//! at once where nothing but time is. In a browser that draws by itself there is nothing to do. Left
//! to others: one frame at a time ([`Frames`]), how long a page waits (settle).

use std::{future::Future, time::Duration};

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy},
        headless_experimental::{BeginFrameParams, ScreenshotParams},
        page::CreateIsolatedWorldParams,
    },
    js_protocol::runtime::EvaluateParams,
};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{JobError, attendant::Progress, load::reach};
use crate::{
    cdp::{CdpError, Reply, Session},
    clock::Clock,
    frames::{Frames, NoFrame},
    page::OPEN_LIMIT,
};

/// What a screen does. A frame in which nothing changes costs 0.2 ms of CPU.
const INTERVAL: Duration = Duration::from_micros(16_667);
/// How often a page with a clock of its own is given time while one of its steps is waited for: most
/// pages load in a few milliseconds, and none of them does so while its clock stands still.
const GRANT_INTERVAL: Duration = Duration::from_millis(2);
/// Time that passes between two frames of a page that moves, in milliseconds.
const STRIDE: f64 = 1_000.0 / 60.0;
/// The most that passes between two frames of a page on which nothing moves, if there is not much more
/// to wait for anyway: by so much may an animation begin late. A step costs 0.9 ms, of whatever length.
const LONG_STRIDE: f64 = 128.0;
/// Otherwise the most is this part of what is left: an animation that begins late by it is over all the
/// same when the picture is taken, unless it takes nearly all of that time.
const LONG_PART: f64 = 1.0 / 8.0;
/// Frames of a page that moves which are not drawn, after each that is, because nobody sees them. All
/// that a page notices of it is that idle callbacks come after drawn frames only: so often, then, as on
/// a page on which nothing moves, every 50 ms. Drawing is about a third of what a
/// frame of a chart costs.
const UNSEEN: u32 = 2;
/// A page's idle callbacks follow frames in which its scripts had something to do. With this there is
/// something in every frame, as there are idle callbacks all the time on a page that nobody draws on
/// demand. In a world of its own: the page's may have another `requestAnimationFrame`.
const PULSE: &str = "(function pulse() { requestAnimationFrame(pulse) })()";
/// A page that has not lived through its stride by now waits for something, or works hard.
const STALL: Duration = Duration::from_millis(250);
/// How long a grant may still take when the step it was for is done.
const LATE_GRANT: Duration = Duration::from_millis(50);
/// Tasks after which time goes on although the page has more of them. As headless Chromium's own
/// `--virtual-time-budget`.
const MOST_TASKS: i64 = 1_000;

/// Draws the frames of one page, and passes its time on.
pub(super) struct Pump<'a> {
    session: &'a Session,
    frames: Option<&'a Frames>,
    gone: &'a CancellationToken,
    clock: &'a mut Option<Clock>,
    progress: watch::Receiver<Progress>,
    /// Until when the real time has been passed on.
    at: Instant,
    /// Time that was granted and has not been reported as passed.
    granted: Option<Grant>,
    stride: f64,
    /// The last frame that was drawn changed something.
    moves: bool,
    /// Frames since one was drawn.
    unseen: u32,
    main_frame: &'a str,
    /// The document that has a [`PULSE`].
    pulsing: Option<u32>,
    /// The last stride did not end in time.
    stalled: bool,
}

#[derive(Debug, Clone, Copy)]
struct Grant {
    milliseconds: f64,
    expired_before: u64,
}

/// Time that has passed on a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    pub(super) milliseconds: f64,
    /// It took as long as it says.
    pub(super) in_real_time: bool,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        session: &'a Session,
        main_frame: &'a str,
        frames: Option<&'a Frames>,
        gone: &'a CancellationToken,
        clock: &'a mut Option<Clock>,
        progress: watch::Receiver<Progress>,
    ) -> Self {
        let at = Instant::now();
        Self {
            session,
            frames,
            gone,
            clock,
            progress,
            at,
            granted: None,
            stride: STRIDE,
            moves: false,
            unseen: 0,
            main_frame,
            pulsing: None,
            stalled: false,
        }
    }

    /// Whether frames are drawn on demand.
    pub(super) fn draws(&self) -> bool {
        self.frames.is_some()
    }

    /// Sets the page's clock right, which stood still while the page waited for a job.
    pub(super) async fn catch_up(&mut self) -> Result<(), JobError> {
        self.at = Instant::now();
        let Some(behind) = self.clock.as_ref().map(|clock| -clock.lead(self.at)) else { return Ok(()) };
        if behind <= 0.0 {
            return Ok(());
        }
        let caught_up = timeout(OPEN_LIMIT, async {
            self.grant(VirtualTimePolicy::Advance, behind).await?;
            self.granted().await
        });
        caught_up.await.map_err(|_| JobError::Stuck)?
    }

    /// Draws a frame; true if it changed anything.
    pub(super) async fn draw(&mut self) -> Result<bool, JobError> {
        Ok(self.frame(BeginFrameParams::default()).await?.parse::<Damage>()?.damaged)
    }

    /// Runs what a page has to do for a frame, down to its layout, and draws nothing.
    async fn animate(&mut self) -> Result<(), JobError> {
        let frame = BeginFrameParams { no_display_updates: Some(true), ..Default::default() };
        self.frame(frame).await.map(drop)
    }

    /// Draws a frame and takes a picture of it, which now and then is not to be had.
    pub(super) async fn picture(&mut self, shot: ScreenshotParams) -> Result<Option<Bytes>, JobError> {
        let frame = BeginFrameParams { screenshot: Some(shot), ..Default::default() };
        Ok(self.frame(frame).await?.into_file()?)
    }

    async fn frame(&mut self, mut frame: BeginFrameParams) -> Result<Reply, JobError> {
        let frames = self.frames.ok_or(JobError::NoFile)?;
        frame.frame_time_ticks = self.clock.as_mut().map(Clock::next_frame);
        frames.draw(self.session, self.gone, frame).await.map_err(|error| match error {
            NoFrame::HeldUp => JobError::HeldUp,
            NoFrame::Cdp(error) => JobError::Cdp(error),
        })
    }

    /// Draws as often as a screen does until `step` is done. Most pages are done before the first
    /// frame.
    pub(super) async fn during<T>(
        &mut self,
        step: impl Future<Output = Result<T, JobError>>,
    ) -> Result<T, JobError> {
        if self.frames.is_none() {
            return step.await;
        }
        let done = tokio::select! {
            biased;
            done = step => done,
            error = self.keep_pace() => Err(error),
        };
        if self.granted.is_some() && !matches!(timeout(LATE_GRANT, self.granted()).await, Ok(Ok(()))) {
            self.clock.iter_mut().for_each(Clock::lose);
        }
        self.at = Instant::now();
        done
    }

    /// Draws and passes time on as fast as the real one goes by.
    async fn keep_pace(&mut self) -> JobError {
        let mut frame_at = Instant::now() + INTERVAL;
        loop {
            if self.clock.is_some() {
                if let Err(error) = self.pass_real_time().await {
                    return error;
                }
                sleep_until((Instant::now() + GRANT_INTERVAL).min(frame_at)).await;
            } else {
                sleep_until(frame_at).await;
            }
            if Instant::now() >= frame_at {
                if let Err(error) = self.draw().await {
                    return error;
                }
                frame_at = Instant::now() + INTERVAL;
            }
        }
    }

    /// Draws one frame after the other until `step` is done, which waits for nothing else.
    pub(super) async fn without_pause<T>(
        &mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        if self.frames.is_none() {
            return Ok(step.await?);
        }
        let frames = async {
            loop {
                if let Err(error) = self.draw().await {
                    return error;
                }
            }
        };
        tokio::select! {
            biased;
            done = step => Ok(done?),
            error = frames => Err(error),
        }
    }

    /// Lets time pass on the page, at most so many milliseconds of it, and draws the frame at the
    /// end. While the page is `busy` with what goes on outside of its clock, it is real time.
    pub(super) async fn pass(&mut self, most: f64, busy: bool) -> Result<Passed, JobError> {
        self.pulse().await?;
        let in_real_time = busy || self.stalled;
        let milliseconds = if in_real_time {
            let tick = INTERVAL.min(Duration::from_secs_f64(most / 1_000.0));
            sleep_until(self.at + tick).await;
            let before = self.at;
            self.pass_real_time().await?;
            self.stalled = false;
            (self.at - before).as_secs_f64() * 1_000.0
        } else {
            self.pass_virtual_time(most).await?
        };
        if self.stalled {
            return Ok(Passed { milliseconds, in_real_time });
        }
        if self.moves && !in_real_time && milliseconds < most && self.unseen < UNSEEN {
            self.unseen += 1;
            self.animate().await?;
        } else {
            self.unseen = 0;
            self.moves = self.draw().await?;
            self.stride = if self.moves { STRIDE } else { self.stride * 2.0 };
        }
        Ok(Passed { milliseconds, in_real_time })
    }

    /// Sees to it that the page's document has a pulse.
    async fn pulse(&mut self) -> Result<(), JobError> {
        let document = self.progress.borrow().documents;
        if self.pulsing.replace(document) == Some(document) {
            return Ok(());
        }
        match self.session.call(&CreateIsolatedWorldParams::new(self.main_frame.to_owned())).await {
            Ok(world) => {
                let mut pulse = EvaluateParams::new(PULSE);
                pulse.context_id = Some(world.execution_context_id);
                Ok(self.session.send(&pulse)?)
            }
            // Gone on to its next document, which will have one.
            Err(CdpError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the page as much time as has gone by since it was last given some.
    async fn pass_real_time(&mut self) -> Result<(), JobError> {
        let now = Instant::now();
        if self.clock.is_some() {
            if self.stalled {
                // Part of that stride may have passed; no more than that is ever unaccounted for.
                self.granted = None;
            }
            self.granted().await?;
            let gone_by = (now - self.at).as_secs_f64() * 1_000.0;
            self.grant(VirtualTimePolicy::Advance, gone_by.max(1.0)).await?;
            self.granted().await?;
        }
        self.at = now;
        Ok(())
    }

    /// Has the page live through its next stride at once, and says how much that was: nothing, if the
    /// page waits for something else.
    async fn pass_virtual_time(&mut self, most: f64) -> Result<f64, JobError> {
        let begun = Instant::now();
        if self.clock.is_none() {
            let pause = SetVirtualTimePolicyParams::new(VirtualTimePolicy::Pause);
            let base = self.session.call(&pause).await?.virtual_time_ticks_base;
            *self.clock = Some(Clock::new(base, begun));
        }
        // A page that takes longer for a frame than a screen gets fewer of them, here as there.
        let slow = (begun - self.at).min(STALL).as_secs_f64() * 1_000.0;
        self.stride = self.stride.min(LONG_STRIDE.max(most * LONG_PART));
        let stride = self.stride.max(slow).min(most);
        self.grant(VirtualTimePolicy::PauseIfNetworkFetchesPending, stride).await?;
        self.at = begun;
        self.stalled =
            timeout(STALL, self.granted()).await.map_or(Ok(true), |passed| passed.map(|()| false))?;
        Ok(if self.stalled { 0.0 } else { stride })
    }

    async fn grant(&mut self, policy: VirtualTimePolicy, milliseconds: f64) -> Result<(), JobError> {
        let expired_before = self.progress.borrow().expired;
        let grant = SetVirtualTimePolicyParams {
            budget: Some(milliseconds),
            max_virtual_time_task_starvation_count: Some(MOST_TASKS),
            ..SetVirtualTimePolicyParams::new(policy)
        };
        self.granted = Some(Grant { milliseconds, expired_before });
        let base = self.session.call(&grant).await?.virtual_time_ticks_base;
        self.clock.iter_mut().for_each(|clock| clock.rebase(base));
        Ok(())
    }

    /// Waits until the time that was granted has passed.
    async fn granted(&mut self) -> Result<(), JobError> {
        let Some(grant) = self.granted else { return Ok(()) };
        reach(&mut self.progress, |progress| progress.expired > grant.expired_before).await;
        self.granted = None;
        self.clock.iter_mut().for_each(|clock| clock.pass(grant.milliseconds));
        Ok(())
    }
}

#[derive(Deserialize)]
struct Damage {
    #[serde(rename = "hasDamage")]
    damaged: bool,
}
