//! Virtual time: the page's clock advances as fast as the page can work.
//!
//! Time is granted in steps of one frame, and each step ends with that frame. A grant is matched to the
//! report that it has passed by the order of Chromium's messages, so a late report is never taken for
//! that of a later grant; the page has lived through every step that is counted.
//!
//! Invariant: how many frames a page gets in a time does not depend on the machine. A renderer that was
//! in virtual time never leaves it, so its page has no other job.

use std::{future::Future, time::Duration};

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy},
        page::CreateIsolatedWorldParams,
    },
    js_protocol::runtime::EvaluateParams,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{JobError, page_events::LoadState, rendering::Rendering, stillness};
use crate::{
    begin_frames::{FRAME_INTERVAL, FrameTime},
    cdp::CdpError,
};

/// Frames that are run but not drawn after each that is drawn: they are not seen, and all that a page
/// notices is that idle callbacks follow drawn frames only. So these come every 50 ms, as on a page that
/// stands still. Drawing is about a third of the cost of a frame.
const UNDRAWN_FRAMES: u32 = 2;
/// A page's idle callbacks follow frames in which a script had something to do. This gives every frame
/// something. It runs in a world of its own: the page may have replaced `requestAnimationFrame`.
const KEEP_ALIVE_FRAMES: &str = "(function next() { requestAnimationFrame(next) })()";
/// How long a renderer may take for one step while no request is in progress, before the page is taken
/// for one that does not live in virtual time: a script that loops until a time has passed never ends
/// there, because the clock stands still while it runs.
const STEP_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Tasks after which time goes on although the page has more of them, as in headless Chromium's own
/// `--virtual-time-budget`.
const MAX_STARVED_TASKS: i64 = 1_000;

/// Drives the virtual time of one page.
pub(super) struct VirtualTimeDriver<'r, 'a> {
    rendering: &'r mut Rendering<'a>,
    /// Frames since one was drawn.
    undrawn: u32,
    /// The document that has [`KEEP_ALIVE_FRAMES`].
    kept_alive: Option<u32>,
    /// Requests hold the clock for longer than the rest of the wait: it goes on without them.
    ignores_requests: bool,
}

impl<'r, 'a> VirtualTimeDriver<'r, 'a> {
    /// Puts the page into virtual time, which stands still until it is granted.
    pub(super) async fn start(rendering: &'r mut Rendering<'a>) -> Result<Self, JobError> {
        rendering.enter_virtual_time().await?;
        Ok(Self::resume(rendering))
    }

    /// Goes on with a page that is in virtual time.
    pub(super) fn resume(rendering: &'r mut Rendering<'a>) -> Self {
        Self { rendering, undrawn: 0, kept_alive: None, ignores_requests: false }
    }

    /// Lets so many milliseconds of virtual time pass.
    pub(super) async fn pass(&mut self, milliseconds: f64) -> Result<(), JobError> {
        let mut left = milliseconds;
        while left > 0.0 {
            left -= self.step(left).await?;
        }
        Ok(())
    }

    /// Lets virtual time pass until no request was in progress for so many milliseconds of it.
    pub(super) async fn pass_quiet(&mut self, milliseconds: f64) -> Result<(), JobError> {
        let (mut left, mut since) = (milliseconds, self.state().since);
        while left > 0.0 {
            let passed = self.step(f64::INFINITY).await?;
            let state = self.state();
            left = if state.is_quiet(Instant::now()) && state.since == since {
                left - passed
            } else {
                milliseconds
            };
            since = state.since;
        }
        Ok(())
    }

    /// Lets virtual time pass until `step` is done, which waits for what the page does.
    pub(super) async fn pass_during<T>(
        &mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        let passing = async {
            loop {
                if let Err(error) = self.step(f64::INFINITY).await {
                    return error;
                }
            }
        };
        tokio::select! {
            biased;
            done = step => Ok(done?),
            error = passing => Err(error),
        }
    }

    /// Grants one frame's time or what is left, whichever is less, waits until the page has lived through
    /// it, runs the frame, and returns the milliseconds.
    async fn step(&mut self, left: f64) -> Result<f64, JobError> {
        let granted = FRAME_INTERVAL.min(left);
        self.keep_alive().await?;
        let policy = if self.ignores_requests {
            VirtualTimePolicy::Advance
        } else {
            VirtualTimePolicy::PauseIfNetworkFetchesPending
        };
        let grant = self.grant(policy, granted).await?;
        if !self.expired(grant, left).await? {
            // The clock of this page will not go on by itself within the time that it is waited for.
            self.ignores_requests = true;
            let grant = self.grant(VirtualTimePolicy::Advance, granted).await?;
            self.expired(grant, f64::INFINITY).await?;
        }
        let drawn = self.undrawn >= UNDRAWN_FRAMES || granted < FRAME_INTERVAL;
        self.undrawn = if drawn { 0 } else { self.undrawn + 1 };
        self.rendering.frame(FrameTime::After(granted), drawn).await?;
        if self.state().needs_real_time {
            return Err(JobError::NeedsRealTime);
        }
        Ok(granted)
    }

    async fn grant(&self, policy: VirtualTimePolicy, milliseconds: f64) -> Result<u64, JobError> {
        let grant = SetVirtualTimePolicyParams {
            budget: Some(milliseconds),
            max_virtual_time_task_starvation_count: Some(MAX_STARVED_TASKS),
            ..SetVirtualTimePolicyParams::new(policy)
        };
        let reply = self.rendering.session.start(&grant)?.reply().await?;
        reply.parse::<serde::de::IgnoredAny>()?;
        Ok(reply.sequence())
    }

    /// Waits until a grant has passed; false if requests hold it up for as long in real time as is left.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page does not get through it for another reason.
    async fn expired(&mut self, grant: u64, left: f64) -> Result<bool, JobError> {
        let mut begun = Instant::now();
        let mut idle_since = begun;
        let wait = if left.is_finite() {
            Duration::from_secs_f64(left.max(FRAME_INTERVAL) / 1_000.0)
        } else {
            STEP_TIMEOUT
        };
        loop {
            let state = self.state();
            if state.budget_expired > grant {
                return Ok(true);
            }
            let now = Instant::now();
            let until = if state.requests > 0 && !self.ignores_requests {
                // The page's clock stands still for the network, whose time is real.
                idle_since = now;
                let until = begun + wait;
                if now >= until {
                    if left.is_finite() {
                        return Ok(false);
                    }
                    self.check_main_thread().await?;
                    begun = Instant::now();
                }
                until.max(now)
            } else if now >= idle_since + STEP_TIMEOUT {
                return Err(not_lived_through());
            } else {
                idle_since + STEP_TIMEOUT
            };
            let state = &mut self.rendering.state;
            match timeout_at(until, state.changed()).await {
                // The handler has ended, and with it the job.
                Ok(Err(_)) => std::future::pending().await,
                Ok(Ok(())) | Err(_) => {}
            }
        }
    }

    /// Finds out whether the page's main thread is what holds up its requests.
    async fn check_main_thread(&self) -> Result<(), JobError> {
        match timeout(STEP_TIMEOUT, stillness::metrics(self.rendering.session)).await {
            Ok(metrics) => Ok(metrics.map(drop)?),
            Err(_) => Err(not_lived_through()),
        }
    }

    /// Sees to it that the current document has something to do in every frame.
    async fn keep_alive(&mut self) -> Result<(), JobError> {
        let document = self.state().documents;
        if self.kept_alive.replace(document) == Some(document) {
            return Ok(());
        }
        let session = self.rendering.session;
        match session.call(&CreateIsolatedWorldParams::new(self.rendering.main_frame.to_owned())).await {
            Ok(world) => {
                let mut script = EvaluateParams::new(KEEP_ALIVE_FRAMES);
                script.context_id = Some(world.execution_context_id);
                Ok(session.send(&script)?)
            }
            // Navigated to its next document, which is given it then.
            Err(CdpError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn state(&self) -> LoadState {
        *self.rendering.state.borrow()
    }
}

fn not_lived_through() -> JobError {
    tracing::debug!("a page does not get through its virtual time");
    JobError::NeedsRealTime
}
