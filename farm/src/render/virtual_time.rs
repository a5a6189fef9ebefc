//! Virtual time: the page's clock advances as fast as the page can work.
//!
//! Time is granted in steps of one frame, and each step ends with that frame. A grant is matched to the
//! report that it has passed by the order of Chromium's messages, so a late report is never taken for
//! that of a later grant; the page has lived through every step that is counted.
//!
//! Invariant: how many frames a page gets in a time does not depend on the machine. A renderer that was
//! in virtual time never leaves it, so its page has no other job.

use std::{future::Future, time::Duration};

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy};
use platen_cdp::CdpError;
use tokio::time::{Instant, timeout};

use super::{JobError, load_state::LoadState, rendering::Rendering, stall::CHECK_INTERVAL, stillness};
use crate::begin_frames::{FRAME_INTERVAL, FrameTime};

/// Frames that are run but not drawn after each that is drawn: they are not seen, and all that a page
/// notices is that idle callbacks follow drawn frames only. So these come every 50 ms, as on a page that
/// stands still. Drawing is about a third of the cost of a frame.
const UNDRAWN_FRAMES: u32 = 2;
/// The time between two frames of a page on which nothing moves, in milliseconds: by at most two frames
/// later begins what a timer sets moving.
const STILL_INTERVAL: f64 = 3.0 * FRAME_INTERVAL;
/// A page's idle callbacks follow frames in which a script had something to do. This gives every frame
/// something. It runs in a world of its own: the page may have replaced `requestAnimationFrame`. The ids
/// of callbacks are counted for all worlds of a document, which is how `moved` knows of the page's own.
const KEEP_ALIVE_FRAMES: &str = "(() => { let latest = requestAnimationFrame(next), others = false;\
    function next() { const id = requestAnimationFrame(next); others ||= id > latest + 1; latest = id }\
    globalThis.moved = () => { const moved = others; others = false; return moved } })()";
/// Tasks after which time goes on although the page has more of them, as in headless Chromium's own
/// `--virtual-time-budget`.
const MAX_STARVED_TASKS: i64 = 1_000;
/// How often a page whose requests hold its clock is asked whether its main thread is alive.
const MAIN_THREAD_INTERVAL: Duration = Duration::from_millis(2_500);

/// Drives the virtual time of one page.
pub(super) struct VirtualTimeDriver<'r, 'a> {
    rendering: &'r mut Rendering<'a>,
    /// Frames since one was drawn.
    undrawn: u32,
    /// Something has changed in the latest frames, or has asked for the next one.
    moves: bool,
    /// Requests hold the clock for longer than the rest of the wait: it goes on without them.
    ignores_requests: bool,
}

impl<'r, 'a> VirtualTimeDriver<'r, 'a> {
    /// Puts the page into virtual time, which stands still until it is granted. A page that is in virtual
    /// time already goes on.
    pub(super) async fn start(rendering: &'r mut Rendering<'a>) -> Result<Self, JobError> {
        if !rendering.is_in_virtual_time() {
            rendering.enter_virtual_time().await?;
        }
        Ok(Self { rendering, undrawn: 0, moves: true, ignores_requests: false })
    }

    /// How far the page has loaded.
    pub(super) fn load_state(&self) -> LoadState {
        self.rendering.load_state()
    }

    /// The time until the next frame, in milliseconds.
    pub(super) fn interval(&self) -> f64 {
        if self.moves { FRAME_INTERVAL } else { STILL_INTERVAL }
    }

    /// Lets virtual time pass until `step` is done, which waits for what the page does.
    pub(super) async fn pass_during<T>(
        &mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        let passing = async {
            loop {
                if let Err(error) = self.step(FRAME_INTERVAL, f64::INFINITY).await {
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

    /// Lets so many milliseconds pass, and runs the next frame. Where a request holds the page's clock for
    /// longer than `patience` milliseconds of real time, it goes on without it.
    pub(super) async fn step(&mut self, milliseconds: f64, patience: f64) -> Result<(), JobError> {
        self.keep_alive().await?;
        let policy = if self.ignores_requests {
            VirtualTimePolicy::Advance
        } else {
            VirtualTimePolicy::PauseIfNetworkFetchesPending
        };
        let grant = self.grant(policy, milliseconds).await?;
        if !self.expired(grant, patience).await? {
            self.ignores_requests = true;
            let grant = self.grant(VirtualTimePolicy::Advance, milliseconds).await?;
            self.expired(grant, f64::INFINITY).await?;
        }
        let drawn = self.undrawn >= UNDRAWN_FRAMES || !self.moves;
        self.undrawn = if drawn { 0 } else { self.undrawn + 1 };
        let damaged = self.rendering.frame(FrameTime::After(milliseconds), drawn).await?;
        if drawn {
            self.moves = damaged || self.has_requested_frames().await?;
        }
        if self.load_state().needs_real_time {
            return Err(JobError::NeedsRealTime);
        }
        Ok(())
    }

    async fn grant(&self, policy: VirtualTimePolicy, milliseconds: f64) -> Result<u64, JobError> {
        let grant = SetVirtualTimePolicyParams {
            budget: Some(milliseconds),
            max_virtual_time_task_starvation_count: Some(MAX_STARVED_TASKS),
            ..SetVirtualTimePolicyParams::new(policy)
        };
        let mut call = self.rendering.session.start(&grant)?;
        let reply = self.rendering.done_by_page(call.reply()).await?;
        reply.parse::<serde::de::IgnoredAny>()?;
        Ok(reply.sequence())
    }

    /// Waits until a grant has passed; false if requests hold it up for `patience` milliseconds of real
    /// time.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page does not get through it for another reason.
    async fn expired(&mut self, grant: u64, patience: f64) -> Result<bool, JobError> {
        let begun = Instant::now();
        let mut stall = self.rendering.stall_meter();
        let mut asked = begun;
        while self.load_state().budget_expired <= grant {
            let changed = self.rendering.state.changed();
            let overdue = match timeout(CHECK_INTERVAL, changed).await {
                // The event handler has ended, and with it the job.
                Ok(Err(_)) => std::future::pending().await,
                Ok(Ok(())) => false,
                Err(_) => true,
            };
            let state = self.load_state();
            if state.requests == 0 || self.ignores_requests {
                if overdue {
                    stall.check()?;
                }
                continue;
            }
            // The page's clock stands still for the network, whose time is real.
            stall.reset();
            if begun.elapsed().as_secs_f64() * 1_000.0 >= patience.max(FRAME_INTERVAL) {
                return Ok(false);
            }
            if asked.elapsed() >= MAIN_THREAD_INTERVAL {
                self.check_main_thread().await?;
                asked = Instant::now();
            }
        }
        Ok(true)
    }

    /// Finds out whether the page's main thread is what holds up its requests.
    async fn check_main_thread(&self) -> Result<(), JobError> {
        self.rendering.done_by_page(stillness::metrics(self.rendering.session)).await.map(drop)
    }

    /// Whether the page has asked for an animation frame since this was asked last.
    async fn has_requested_frames(&mut self) -> Result<bool, JobError> {
        let moved = self.rendering.evaluate_isolated("moved()").await?;
        // Without an answer the document is gone, and the next one moves.
        Ok(moved.is_none_or(|moved| moved != false))
    }

    /// Sees to it that the current document has something to do in every frame.
    async fn keep_alive(&mut self) -> Result<(), JobError> {
        let document = self.load_state().documents;
        if self.rendering.kept_alive != Some(document) {
            (self.rendering.kept_alive, self.moves) = (Some(document), true);
            // Without an answer it has navigated to its next document, which is given this then.
            self.rendering.evaluate_isolated(KEEP_ALIVE_FRAMES).await?;
        }
        Ok(())
    }
}
