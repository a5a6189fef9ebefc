//! Scrolling through a part of the page before its capture, as a person does.
//!
//! Scripts load pictures and show sections when these come into view, at once or after a time. Without a script of the
//! page nothing does, apart from lazy images, which are loaded in any case.
//!
//! A step takes a frame. Only if it makes a script run, or starts an animation or a request, it takes time as well: in
//! virtual time where that is possible, so that a page whose scripts ignore scrolling can be used again.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::page::GetLayoutMetricsParams;
use tokio::time::{Instant, sleep, timeout};

use super::super::{
    animations,
    load_state::reach,
    main_thread::{self, FRAME_PAUSE, MAX_QUICK_FRAMES, TASKS_TIMEOUT},
    rendering::{Clock, Rendering},
    resources,
    virtual_time::{REQUEST_TIMEOUT_MS, VirtualTimeDriver},
};
use crate::{
    begin_frames::{FRAME_DURATION, FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
};

/// Steps through a part of a page: more than an image of 100 megapixels has at the usual size of the viewport.
const MAX_STEPS: f64 = 120.0;
/// The page's time after a step that has made a script run: longer than what scripts usually wait for after scrolling.
const STEP_TIME_MS: f64 = 250.0;
/// The page's further time while scripts draw more and more of what is in view.
const MORE_TIME_MS: f64 = 100.0;
/// The last part of these times, in which is noted what scripts draw.
const WATCHED_TIME_MS: f64 = 50.0;
/// The shortest step in virtual time.
const MIN_STEP_MS: f64 = 0.1;
/// The page's time after the return to the first position.
const RETURN_TIME_MS: f64 = 500.0;
/// The page's time of all steps and the return, and the real time in which requests may stop or extend it.
const MAX_TIME_MS: f64 = 6_000.0;
/// What passes in real time takes at most the job's remaining time divided by this, and virtual time at most as much CPU time.
const MAX_SHARE: u32 = 3;
/// Frames that are run for one of the main thread: Chromium may run a frame without it.
const MAX_FRAMES: u32 = 50;
/// Defines `own.scroll`.
const BEGIN: &str = concat!("(", include_str!("scroll.js"), ")()");
/// Defines `own.shown`.
const SHOWN: &str = concat!("(", include_str!("shown.js"), ")()");

/// Whether the page is scrolled through before its capture. Without a script of the page nothing notices that.
pub(super) fn is_scrolled(rendering: &Rendering<'_>) -> bool {
    rendering.scripts.ran && rendering.job.options.scroll
}

/// Scrolls from the end of the first viewport to a height of the page in steps of a viewport, and back. If `whole`, also
/// through what this has added at the end, but only once, because some pages add more at every end. Returns the height
/// that was scrolled through. All are in CSS pixels.
pub(super) async fn through(
    rendering: &mut Rendering<'_>,
    viewport_height: f64,
    mut to: f64,
    whole: bool,
) -> Result<f64, JobError> {
    let mut walk = Walk::begin(rendering).await?;
    let mut top = viewport_height;
    for pass in 0..2 {
        let step = viewport_height.max((to - top) / MAX_STEPS);
        while top < to {
            walk.step(top, ((to - top) / step).ceil()).await?;
            top += step;
        }
        let height = if whole && pass == 0 { content_size(walk.rendering).await?.1 } else { to };
        if height <= to {
            break;
        }
        to = height;
    }
    walk.end().await?;
    Ok(to)
}

/// Width and height of the page in CSS pixels.
pub(super) async fn content_size(rendering: &Rendering<'_>) -> Result<(f64, f64), JobError> {
    let metrics = rendering.wait_for_page(rendering.session.call(&GetLayoutMetricsParams {})).await?;
    let content = metrics.css_content_size;
    Ok((content.width.ceil(), content.height.ceil()))
}

struct Walk<'r, 'a> {
    rendering: &'r mut Rendering<'a>,
    /// The page's time that is left for steps.
    left_ms: f64,
    /// Real time that is left for requests.
    requests_ms: f64,
    /// When steps must not take any more real time.
    until: Instant,
    /// The CPU time of the browser after which steps must not take any more virtual time. It depends on the page, while the real
    /// time of these steps depends on the load of the machine.
    until_cpu: Option<Duration>,
    /// A step has taken time.
    has_taken_time: bool,
    /// The page cannot be in virtual time.
    in_real_time: bool,
    /// Requests in progress at the start.
    requests: usize,
}

/// What may have happened in a step.
#[derive(PartialEq)]
struct Activity {
    /// CPU time of scripts.
    script: f64,
    requests: u64,
    animations: u64,
}

impl<'r, 'a> Walk<'r, 'a> {
    async fn begin(rendering: &'r mut Rendering<'a>) -> Result<Self, JobError> {
        let now = Instant::now();
        let share = rendering.deadline.saturating_duration_since(now) / MAX_SHARE;
        let requests = rendering.load_state().requests.open;
        let in_real_time = rendering.clock.mode == Clock::Real || requests > 0;
        let mut walk = Self {
            left_ms: MAX_TIME_MS - RETURN_TIME_MS,
            requests_ms: MAX_TIME_MS,
            until: now + share,
            until_cpu: None,
            has_taken_time: false,
            in_real_time,
            requests,
            rendering,
        };
        walk.rendering.evaluate_isolated(SHOWN).await?;
        walk.run_tasks(BEGIN).await?;
        Ok(walk)
    }

    /// Scrolls down. `steps` is the number of steps from here on, to which the time that is left is given in equal shares.
    async fn step(&mut self, top: f64, steps: f64) -> Result<(), JobError> {
        if self.scroll(&format!("own.scroll.to({top})")).await? {
            let real_ms = self.remaining().as_secs_f64() * 1_000.0 - RETURN_TIME_MS;
            let left_ms = if self.in_real_time { self.left_ms.min(real_ms) } else { self.left_ms };
            let share_ms = (left_ms / steps).max(0.0);
            let mut time_ms = STEP_TIME_MS.min(share_ms);
            let mut passed_ms = 0.0;
            loop {
                let requests_ms = (self.requests_ms / steps).max(0.0);
                self.requests_ms -= self.pass(time_ms - WATCHED_TIME_MS, requests_ms).await?;
                self.rendering.evaluate_isolated("own.shown.watch()").await?;
                self.requests_ms -= self.pass(WATCHED_TIME_MS.min(time_ms), 0.0).await?;
                passed_ms += time_ms;
                // The next step shows what their ends start.
                animations::finish(self.rendering).await?;
                let grows =
                    self.rendering.evaluate_isolated("own.shown.measure()").await? == Some(true.into());
                time_ms = MORE_TIME_MS.min(share_ms - passed_ms);
                if !grows || time_ms < WATCHED_TIME_MS {
                    break;
                }
            }
            self.left_ms -= passed_ms;
        }
        Ok(())
    }

    /// Scrolls back, and shows what scrolling has shown.
    async fn end(mut self) -> Result<(), JobError> {
        self.scroll("own.scroll.to()").await?;
        if self.has_taken_time {
            self.pass(RETURN_TIME_MS, 0.0).await?;
        }
        resources::settle(self.rendering).await?;
        if self.rendering.clock.in_virtual_time {
            // Images of SVG are loaded in further tasks, which need time.
            self.frame().await?;
        }
        animations::finish(self.rendering).await?;
        if self.has_taken_time && self.rendering.has_begin_frame_control() {
            self.rendering.pause_animations()?;
        }
        let kept = self.rendering.evaluate_isolated("own.shown.keep()").await?;
        if kept.is_some_and(|kept| kept != 0) {
            self.frame().await?;
            animations::finish(self.rendering).await?;
        }
        Ok(())
    }

    /// Scrolls by a script, and runs a frame in which the page has run its callbacks for that. Returns whether a script
    /// has run, or an animation or a request has started.
    async fn scroll(&mut self, script: &str) -> Result<bool, JobError> {
        if self.rendering.clock.in_virtual_time {
            // Otherwise a callback of the driver would run in the frame.
            VirtualTimeDriver::start(self.rendering).await?.rest().await?;
        }
        let before = self.activity().await?;
        let scrolled = self.rendering.evaluate_isolated(script).await? == Some(true.into());
        self.frames_until("own.scroll.hadFrame()", if scrolled { MAX_FRAMES } else { 1 }).await?;
        let are_done = self.run_tasks("own.scroll.tasks()").await?;
        Ok(!are_done || self.activity().await? != before)
    }

    /// Runs a script that ends with tasks of low priority; false if these have not run in time.
    async fn run_tasks(&mut self, script: &str) -> Result<bool, JobError> {
        if self.rendering.clock.in_virtual_time {
            // They run only while time is granted.
            self.rendering.evaluate_isolated(&format!("void {script}")).await?;
            return self.frames_until("own.scroll.isIdle", MAX_QUICK_FRAMES).await;
        }
        match timeout(TASKS_TIMEOUT, self.rendering.evaluate_isolated(script)).await {
            Ok(done) => done.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    /// Runs frames, at least one, until a condition of the page is true.
    async fn frames_until(&mut self, condition: &str, max: u32) -> Result<bool, JobError> {
        for frames in 1..=max {
            if frames > MAX_QUICK_FRAMES {
                sleep(FRAME_PAUSE).await;
            }
            self.frame().await?;
            // Without a value the page has navigated.
            if self.rendering.evaluate_isolated(condition).await? != Some(false.into()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn activity(&mut self) -> Result<Activity, JobError> {
        let metrics = main_thread::metrics(self.rendering.session);
        let script = self.rendering.wait_for_page(metrics).await?.script;
        let state = self.rendering.load_state();
        Ok(Activity { script, requests: state.requests.sent, animations: state.activity.animations })
    }

    /// A frame: in real time one that is not drawn, at the time of the frame before.
    async fn frame(&mut self) -> Result<(), JobError> {
        if self.rendering.clock.in_virtual_time {
            let mut driver = VirtualTimeDriver::start(self.rendering).await?;
            driver.step_alone(FRAME_INTERVAL_MS, REQUEST_TIMEOUT_MS).await?;
        } else if self.rendering.has_begin_frame_control() {
            self.rendering.frame(FrameTime::Same, false).await?;
        }
        Ok(())
    }

    /// Lets `time_ms` of the page's time pass. Requests stop it or, in real time, extend it, for up to `max_requests_ms`.
    /// Returns how long they did, in milliseconds.
    async fn pass(&mut self, time_ms: f64, max_requests_ms: f64) -> Result<f64, JobError> {
        self.has_taken_time = true;
        let state = self.rendering.load_state();
        self.in_real_time |= state.activity.needs_real_time;
        if !self.in_real_time && !self.rendering.clock.in_virtual_time {
            // The page's clock does not stop for requests that it has sent before.
            let max = Duration::from_secs_f64(max_requests_ms / 1_000.0).min(self.remaining());
            let idle = reach(&mut self.rendering.state, |state| state.requests.open == 0);
            self.in_real_time = timeout(max, idle).await.is_err();
        }
        if self.in_real_time && !self.rendering.clock.in_virtual_time {
            return self.pass_real_time(time_ms, max_requests_ms).await;
        }
        let browser = &self.rendering.pooled.browser;
        if self.until_cpu.is_none() {
            self.until_cpu = Some(browser.cpu_time().await + self.remaining());
        }
        let (until, until_cpu) = (self.until, self.until_cpu);
        let mut driver = VirtualTimeDriver::start(self.rendering).await?;
        // The time of animation frames stands while animations are paused.
        driver.rendering.resume_in_virtual_time().await?;
        let (mut passed_ms, mut requests_ms) = (0.0, 0.0);
        // Chromium never ends a step of no time, which a rounding error can leave.
        while time_ms - passed_ms >= MIN_STEP_MS {
            if Instant::now() >= until && Some(browser.cpu_time().await) >= until_cpu {
                break;
            }
            let step_ms = driver.interval_ms().min(time_ms - passed_ms);
            let (begun, before) = (Instant::now(), driver.rendering.load_state());
            driver.step(step_ms, max_requests_ms).await?;
            passed_ms += step_ms;
            if before.requests.open > 0 || driver.rendering.load_state().requests.sent > before.requests.sent
            {
                requests_ms += begun.elapsed().as_secs_f64() * 1_000.0;
            }
        }
        Ok(requests_ms)
    }

    async fn pass_real_time(&mut self, time_ms: f64, max_requests_ms: f64) -> Result<f64, JobError> {
        self.rendering.resume_animations()?;
        let mut passed_ms = 0.0;
        while passed_ms < time_ms
            || passed_ms < time_ms + max_requests_ms
                && self.rendering.load_state().requests.open > self.requests
        {
            if self.remaining().is_zero() {
                break;
            }
            sleep(FRAME_DURATION).await;
            if self.rendering.has_begin_frame_control() {
                self.rendering.frame(FrameTime::Now, true).await?;
            } else {
                // Waits for the page's main thread.
                main_thread::metrics(self.rendering.session).await?;
            }
            passed_ms += FRAME_INTERVAL_MS;
        }
        // The main thread runs the timers that are due before it answers the second time.
        for _ in 0..2 {
            main_thread::metrics(self.rendering.session).await?;
        }
        Ok((passed_ms - time_ms).max(0.0))
    }

    fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}
