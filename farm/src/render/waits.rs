//! The ways in which a wait passes: a function for each plan, and the steps of which they consist.
//!
//! Real time passes until the page's main thread is idle and no request is in progress. The rest of the wait
//! is skipped if the page is proven to be static (`static_page`), and passes in virtual time otherwise. A
//! page with a worker or a socket, which virtual time does not control, waits in real time.

use std::time::Duration;

use platen_shared::refusal::{FirstError, Refusal};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    background_work, elements, main_thread,
    remaining_wait::RemainingWait,
    rendering::{Clock, Rendering},
    resources, script,
    virtual_time::{self, VirtualTimeDriver},
};
use crate::{
    begin_frames::{FRAME_DURATION, FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
    metrics::Waiting,
};

/// Frames in real time between two measurements of the main thread.
const FRAMES_PER_SAMPLE: u32 = 3;
/// The main thread is idle if it took less than this share of the time.
const MAX_IDLE_SHARE: f64 = 0.25;
/// How long to wait for the main thread to be idle.
const MAX_BUSY_MS: f64 = 500.0;

/// The time before the deadline at which a condition that is not true is reported, which is more useful than that the time is
/// over.
const CONDITION_RESERVE: Duration = Duration::from_secs(1);

/// The wait of a job in progress.
pub(super) struct Wait<'r, 'a> {
    pub(super) rendering: &'r mut Rendering<'a>,
    pub(super) left: RemainingWait,
}

impl Wait<'_, '_> {
    /// Runs the first frame of the page, with the resources that it draws, if its file shows frames or it `acts`: it may react
    /// to frames, and a script may run from here on.
    pub(super) async fn first_frame(&mut self, acts: bool) -> Result<(), JobError> {
        let rendering = &mut *self.rendering;
        if !acts && !rendering.has_begin_frame_control() {
            return run_due_timers(rendering).await;
        }
        if rendering.has_begin_frame_control() {
            let is_drawn = acts || rendering.needs_frame();
            if is_drawn && rendering.waits_for_resources() {
                // Without frames, because their number would depend on the network.
                resources::wait(rendering).await;
                // The job has waited for their requests already.
                self.left.since = rendering.load_state().requests.since;
            }
            if acts {
                rendering.scripts.ran = true;
                // An animation that was created before the first frame starts up to one frame later. The first frame must
                // not be earlier than that, or the animation's progress would depend on when between two frames the page
                // loaded.
                sleep(FRAME_DURATION).await;
            }
            if is_drawn || rendering.scripts.ran {
                main_thread::run_frame(rendering, FrameTime::Now).await?;
            }
        }
        check_conditions(rendering, &mut self.left).await
    }

    /// Whether a static page is still so after its first frame, which starts to load lazy images.
    pub(super) async fn skip(&mut self) -> Result<bool, JobError> {
        self.first_frame(false).await?;
        Ok(!self.rendering.load_state().changes())
    }

    /// Passes real time until the page is idle, and virtual time from then on. A page with a script that virtual time does not
    /// stop for passes all of it in real time.
    pub(super) async fn pass_virtual_time(&mut self) -> Result<Waiting, JobError> {
        let script_ran = self.rendering.scripts.ran;
        self.first_frame(true).await?;
        self.pass_real_time().await?;
        while !self.until_idle().await? {
            // The page has started a request, a worker or a socket.
            self.pass_real_time().await?;
        }
        if self.left.is_over() {
            return Ok(Waiting::RealTime);
        }
        if script_ran && background_work::is_used(self.rendering).await? {
            self.rendering.clock.mode = Clock::Real;
            self.pass_real_time().await?;
            return Ok(Waiting::RealTime);
        }
        self.grant_virtual_time().await?;
        Ok(Waiting::VirtualTime)
    }

    async fn grant_virtual_time(&mut self) -> Result<(), JobError> {
        let mut driver = VirtualTimeDriver::start(self.rendering).await?;
        while !self.left.is_over() {
            let step_ms = self.left.until_frame(driver.interval_ms());
            driver.step_if_needed(step_ms, self.left.request_timeout_ms()).await?;
            self.left.pass(step_ms, &driver.rendering.load_state());
            check_conditions(driver.rendering, &mut self.left).await?;
        }
        driver.catch_up().await?;
        // A capture may take several frames, and their number depends on the machine.
        Ok(self.rendering.pause_animations()?)
    }

    /// Passes real time in frames until the page's main thread is idle or the wait is over: a script that
    /// measures its own run time must not run in virtual time. False if the page has started something that needs
    /// real time.
    ///
    /// Every frame is run, even a late one, with the frame time at which it was due, so that the number of frames
    /// and their times do not depend on the machine.
    async fn until_idle(&mut self) -> Result<bool, JobError> {
        let mut passed_ms = 0.0;
        while !self.left.is_over() && passed_ms < MAX_BUSY_MS {
            let tasks = main_thread::metrics(self.rendering.session).await?.tasks;
            let mut sample_ms = 0.0;
            for frame in 1..=FRAMES_PER_SAMPLE {
                let step_ms = self.left.until_frame(FRAME_INTERVAL_MS);
                self.rendering.due_frame(step_ms, frame == FRAMES_PER_SAMPLE).await?;
                sample_ms += step_ms;
                let state = self.rendering.load_state();
                self.left.pass(step_ms, &state);
                check_conditions(self.rendering, &mut self.left).await?;
                if state.takes_real_time() {
                    return Ok(false);
                }
                if self.left.is_over() {
                    return Ok(true);
                }
            }
            passed_ms += sample_ms;
            let busy = main_thread::metrics(self.rendering.session).await?.tasks - tasks;
            if busy < sample_ms / 1_000.0 * MAX_IDLE_SHARE {
                break;
            }
        }
        Ok(true)
    }

    /// Passes real time until the wait is over or, with [`Clock::Virtual`], until nothing needs real time. On a page that
    /// needs real time, all time since the milestone counts, as its own clock shows it.
    pub(super) async fn pass_real_time(&mut self) -> Result<(), JobError> {
        if !self.rendering.load_state().activity.needs_real_time {
            self.left.at = Instant::now();
        }
        while !self.left.is_over() {
            let rendering = &mut *self.rendering;
            if rendering.clock.mode == Clock::Virtual && !rendering.load_state().takes_real_time() {
                return Ok(());
            }
            sleep_until(self.left.next_frame(FRAME_INTERVAL_MS)).await;
            if rendering.has_begin_frame_control() {
                if rendering.scripts.ran {
                    virtual_time::keep_alive(rendering).await?;
                }
                rendering.frame(FrameTime::Now, true).await?;
            } else {
                // Waits for the page's main thread.
                main_thread::metrics(rendering.session).await?;
            }
            self.left.pass_real_time(&rendering.load_state());
            check_conditions(self.rendering, &mut self.left).await?;
        }
        run_due_timers(self.rendering).await
    }
}

/// Lets the page run the timers that are due: its main thread does so before it answers the second time.
async fn run_due_timers(rendering: &Rendering<'_>) -> Result<(), JobError> {
    for _ in 0..2 {
        main_thread::metrics(rendering.session).await?;
    }
    Ok(())
}

/// Checks the conditions that the wait still needs, which must be true at once.
///
/// # Errors
/// The refusal for the one that is not true when their time is over, in the page's time or in real time.
async fn check_conditions(rendering: &mut Rendering<'_>, left: &mut RemainingWait) -> Result<(), JobError> {
    let Some(left_ms) = left.condition_ms else { return Ok(()) };
    let options = &rendering.job.options;
    let unmet = match (&options.wait_for_selector, &options.wait_for_function) {
        (Some(selector), _) if !elements::is_visible(rendering, selector).await? => {
            Refusal::ElementNotVisible { first_error: FirstError::default() }
        }
        (_, Some(function)) if !script::is_true(rendering, function).await? => {
            Refusal::FunctionNotTrue { first_error: FirstError::default() }
        }
        _ => {
            left.condition_ms = None;
            return Ok(());
        }
    };
    if left_ms <= 0.0 || Instant::now() + CONDITION_RESERVE >= rendering.deadline {
        return Err(JobError::Refused(unmet));
    }
    Ok(())
}
