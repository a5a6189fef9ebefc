//! Virtual time: the page's clock advances as fast as the page can process its tasks.
//!
//! Time is granted in steps of one frame, and each step ends with that frame. The sequence numbers of
//! Chromium's messages match the expiry of a grant to that grant, so a late expiry never ends a later step.
//!
//! Invariant: the number of frames in a period of virtual time does not depend on the machine. A renderer
//! cannot leave virtual time, so its page is not reused.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy};
use tokio::time::{Instant, timeout};

use super::{background_work, main_thread, rendering::Rendering, stall::CHECK_INTERVAL};
use crate::{
    begin_frames::{FRAME_INTERVAL_MS, FrameTime},
    browser::HANG_TIMEOUT,
    error::JobError,
};

/// Frames that are run but not drawn after each drawn one. Drawing is about a third of a frame's cost. To the
/// page the only difference is that idle callbacks follow drawn frames: they run every 50 ms, as on a page on which nothing
/// moves. A page that moves and needs [`DRAWN_FRAMES`] has all of them drawn.
const UNDRAWN_FRAMES: u32 = 2;
/// Frame interval of a page on which nothing has moved yet, which a timer or a response may still move. That begins at most two
/// frames late.
const STILL_INTERVAL_MS: f64 = 3.0 * FRAME_INTERVAL_MS;
/// Frames that are left out one after the other on a page that stands still while no script of it runs. What may begin to move
/// in another way, such as an element that a script has made earlier, does so at most half a second late.
const MAX_LEFT_OUT: u32 = 9;
/// Requests an animation frame in every frame, and defines `own.requests`, which returns [`FRAMES`] and [`DRAWN_FRAMES`].
const KEEP_ALIVE_FRAMES: &str = concat!("(", include_str!("keep_alive_frames.js"), ")()");
/// A script has requested an animation frame, something was scrolled, or a view transition is active.
const FRAMES: u64 = 1;
/// A script needs drawn frames: it has requested an idle callback, or a view transition is active.
const DRAWN_FRAMES: u64 = 2;
/// Steps that are taken for one with the page's callbacks. Chromium may run a frame without the page's main thread.
const MAX_STEPS: u32 = 4;
/// Tasks after which time advances although more are pending; the value of headless Chromium's
/// `--virtual-time-budget`.
const MAX_STARVED_TASKS: i64 = 1_000;
/// How long a request may stop the page's clock in a frame that is run beyond the wait, in milliseconds.
pub(super) const REQUEST_TIMEOUT_MS: f64 = 1_000.0;

pub(super) struct VirtualTimeDriver<'r, 'a> {
    pub(super) rendering: &'r mut Rendering<'a>,
    /// Frames since the latest drawn one.
    undrawn: u32,
    /// A drawn frame has changed the page, or a script has requested an animation frame; `None` before the first drawn one.
    moves: Option<bool>,
    /// The latest drawn frame has changed the page.
    changed: bool,
    /// The page has needed [`DRAWN_FRAMES`].
    needs_drawn: bool,
    /// Layouts of the page at a drawn frame, if they were needed.
    layouts: Option<f64>,
    /// What the page had done at its latest drawn frame, if that has changed nothing.
    at_frame: Option<Progress>,
    /// Frames that were left out since the latest one.
    left_out: u32,
    /// Time that was granted since the latest frame.
    since_frame_ms: f64,
    /// A request has stopped the clock for too long: from now on time advances during requests.
    ignores_requests: bool,
}

/// What a page has done up to some time. A frame of one that stands still and does no more shows nothing new.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Progress {
    /// CPU time of its scripts, in seconds.
    script: f64,
    layouts: f64,
    /// Number of requests that were sent.
    sent: u64,
    /// Number of requests in progress.
    open: usize,
}

impl<'r, 'a> VirtualTimeDriver<'r, 'a> {
    /// Puts the page into virtual time, if it is not in it yet.
    pub(super) async fn start(rendering: &'r mut Rendering<'a>) -> Result<Self, JobError> {
        if !rendering.clock.in_virtual_time {
            rendering.enter_virtual_time().await?;
        }
        Ok(Self {
            rendering,
            undrawn: 0,
            moves: None,
            changed: false,
            needs_drawn: false,
            layouts: None,
            at_frame: None,
            left_out: 0,
            since_frame_ms: 0.0,
            ignores_requests: false,
        })
    }

    pub(super) fn interval_ms(&self) -> f64 {
        if self.moves == Some(false) { STILL_INTERVAL_MS } else { FRAME_INTERVAL_MS }
    }

    /// Takes a step in whose frame the page has run its animation-frame, scroll and resize callbacks.
    pub(super) async fn step_with_callbacks(
        &mut self,
        step_ms: f64,
        request_timeout_ms: f64,
    ) -> Result<(), JobError> {
        for _ in 0..MAX_STEPS {
            self.keep_alive().await?;
            let before = self.rendering.evaluate_isolated("own.callbacks").await?;
            self.step(step_ms, request_timeout_ms).await?;
            // Without a value the page has navigated.
            if before.is_none() || before != self.rendering.evaluate_isolated("own.callbacks").await? {
                break;
            }
        }
        Ok(())
    }

    /// Grants `step_ms` and runs the next frame. After a request has stopped the page's clock for
    /// `request_timeout_ms` of real time, time advances during requests.
    pub(super) async fn step(&mut self, step_ms: f64, request_timeout_ms: f64) -> Result<(), JobError> {
        self.keep_alive().await?;
        self.step_alone(step_ms, request_timeout_ms).await
    }

    /// Takes a step, and leaves out its frame if that cannot show anything new. The next frame makes up for its time.
    pub(super) async fn step_if_needed(
        &mut self,
        step_ms: f64,
        request_timeout_ms: f64,
    ) -> Result<(), JobError> {
        self.keep_alive().await?;
        self.pass(step_ms, request_timeout_ms).await?;
        if self.left_out < MAX_LEFT_OUT && self.stands_still().await? {
            self.left_out += 1;
            return Ok(());
        }
        self.run_frame().await
    }

    /// Runs the frame of the latest step, if it was left out.
    pub(super) async fn catch_up(&mut self) -> Result<(), JobError> {
        if self.left_out > 0 { self.run_frame().await } else { Ok(()) }
    }

    /// Takes a step in which no script of the farm runs, after [`Self::rest`].
    pub(super) async fn step_alone(&mut self, step_ms: f64, request_timeout_ms: f64) -> Result<(), JobError> {
        self.pass(step_ms, request_timeout_ms).await?;
        self.run_frame().await
    }

    /// Grants `step_ms` and waits until the page has used it.
    async fn pass(&mut self, step_ms: f64, request_timeout_ms: f64) -> Result<(), JobError> {
        let policy = if self.ignores_requests {
            VirtualTimePolicy::Advance
        } else {
            VirtualTimePolicy::PauseIfNetworkFetchesPending
        };
        let grant = self.grant(policy, step_ms).await?;
        if !self.expired(grant, request_timeout_ms).await? {
            self.ignores_requests = true;
            let grant = self.grant(VirtualTimePolicy::Advance, step_ms).await?;
            self.expired(grant, f64::INFINITY).await?;
        }
        self.since_frame_ms += step_ms;
        Ok(())
    }

    /// Runs a frame for the time that was granted since the latest one.
    async fn run_frame(&mut self) -> Result<(), JobError> {
        self.left_out = 0;
        let time = FrameTime::After(std::mem::take(&mut self.since_frame_ms));
        let drawn =
            self.undrawn >= UNDRAWN_FRAMES || self.moves == Some(false) || (self.needs_drawn && self.changed);
        self.undrawn = if drawn { 0 } else { self.undrawn + 1 };
        let damaged = self.rendering.frame(time, drawn).await?;
        if drawn {
            self.observe(damaged).await?;
        }
        if self.rendering.load_state().activity.needs_real_time
            || background_work::is_used_by_new(self.rendering).await?
        {
            return Err(JobError::NeedsRealTime);
        }
        Ok(())
    }

    /// Grants virtual time and returns the sequence number of Chromium's answer.
    async fn grant(&self, policy: VirtualTimePolicy, step_ms: f64) -> Result<u64, JobError> {
        let grant = SetVirtualTimePolicyParams {
            budget: Some(step_ms),
            max_virtual_time_task_starvation_count: Some(MAX_STARVED_TASKS),
            ..SetVirtualTimePolicyParams::new(policy)
        };
        let mut call = self.rendering.session.start(&grant)?;
        let reply = self.rendering.wait_for_page(call.reply()).await?;
        reply.parse::<serde::de::IgnoredAny>()?;
        Ok(reply.sequence)
    }

    /// Waits until a grant has expired; false if requests have stopped the clock for `request_timeout_ms` of
    /// real time.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page stalls for another reason.
    async fn expired(&mut self, grant: u64, request_timeout_ms: f64) -> Result<bool, JobError> {
        let started = Instant::now();
        let mut stall = self.rendering.stall_meter();
        let mut checked = started;
        while self.rendering.load_state().activity.budget_expired <= grant {
            let changed = self.rendering.state.changed();
            let overdue = match timeout(CHECK_INTERVAL, changed).await {
                // The event handler has ended, and with it the job.
                Ok(Err(_)) => std::future::pending().await,
                Ok(Ok(())) => false,
                Err(_) => true,
            };
            let state = self.rendering.load_state();
            if state.requests.open == 0 || self.ignores_requests {
                if overdue {
                    stall.check().await?;
                }
                continue;
            }
            // Requests stop the page's clock, and take real time.
            stall.reset();
            if started.elapsed().as_secs_f64() * 1_000.0 >= request_timeout_ms.max(FRAME_INTERVAL_MS) {
                return Ok(false);
            }
            if checked.elapsed() >= HANG_TIMEOUT / 4 {
                // Fails if the page's main thread stalls, which would delay its requests.
                self.rendering.wait_for_page(main_thread::metrics(self.rendering.session)).await?;
                checked = Instant::now();
            }
        }
        Ok(true)
    }

    /// Notes what moves the page after a drawn frame: a browser runs frames for what is not visible as well.
    async fn observe(&mut self, damaged: bool) -> Result<(), JobError> {
        self.at_frame = None;
        self.changed = damaged;
        // Before the question for requests, so that a callback that runs between the two is not missed.
        if !damaged && (self.moves != Some(true) || self.needs_drawn) {
            let now = self.progress().await?;
            let before = self.layouts.replace(now.layouts);
            self.changed = before.is_some_and(|before| before.to_bits() != now.layouts.to_bits());
            self.at_frame = Some(now);
        }
        let requests = self.rendering.evaluate_isolated("own.requests()").await?;
        // Without a value the document was replaced, and the next one may move.
        let requests = requests.and_then(|found| found.as_u64()).unwrap_or(FRAMES);
        self.needs_drawn |= requests & DRAWN_FRAMES != 0;
        self.moves = Some(self.moves == Some(true) || self.changed || requests & FRAMES != 0);
        Ok(())
    }

    /// Whether the page stood still in its latest frame, and has done nothing since then.
    async fn stands_still(&self) -> Result<bool, JobError> {
        let Some(before) = self.at_frame.filter(|_| self.moves == Some(false) && !self.needs_drawn) else {
            return Ok(false);
        };
        let state = self.rendering.load_state();
        if state.activity.may_change || state.requests.open > 0 {
            return Ok(false);
        }
        Ok(self.progress().await? == before)
    }

    async fn progress(&self) -> Result<Progress, JobError> {
        let metrics = self.rendering.wait_for_page(main_thread::metrics(self.rendering.session)).await?;
        let requests = self.rendering.load_state().requests;
        Ok(Progress {
            script: metrics.script,
            layouts: metrics.layouts,
            sent: requests.sent,
            open: requests.open,
        })
    }

    /// Stops [`KEEP_ALIVE_FRAMES`] until the next step, so that no script of the farm runs in a frame.
    pub(super) async fn rest(&mut self) -> Result<(), JobError> {
        if self.rendering.document.kept_alive.take().is_some() {
            self.rendering.evaluate_isolated("own.rest?.()").await?;
        }
        Ok(())
    }

    async fn keep_alive(&mut self) -> Result<(), JobError> {
        if keep_alive(self.rendering).await? {
            self.moves = self.moves.filter(|moves| *moves);
        }
        Ok(())
    }
}

/// Starts [`KEEP_ALIVE_FRAMES`] in the current document; false if it runs there already.
pub(super) async fn keep_alive(rendering: &mut Rendering<'_>) -> Result<bool, JobError> {
    let document = rendering.load_state().document.number;
    if rendering.document.kept_alive.replace(document) == Some(document) {
        return Ok(false);
    }
    // Without a value the page has navigated; the next step starts the script in the new document.
    rendering.evaluate_isolated(KEEP_ALIVE_FRAMES).await?;
    Ok(true)
}
