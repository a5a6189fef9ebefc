//! The virtual time of a page, which passes in steps with a frame after each.
//!
//! Invariant: the time of frames never decreases, because Chromium does not finish such a frame; no time
//! passes while a network request is in progress.

use anyhow::Result;
use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::{EventVirtualTimeBudgetExpired, SetVirtualTimePolicyParams, VirtualTimePolicy},
    headless_experimental::BeginFrameReturns,
    page::EventLoadEventFired,
};
use platen_cdp::Event;

use super::tab::{FRAME_INTERVAL_MS, Tab};

/// The longest step while nothing moves.
const MAX_STEP_MS: f64 = 128.0;
/// Tasks that may run in one step before Chromium lets time pass all the same.
const MAX_TASKS_PER_STEP: i64 = 1000;

/// The time of one page, in milliseconds.
pub(super) struct Clock {
    base: f64,
    passed: f64,
    step: f64,
}

impl Clock {
    /// Stops the page's time and draws its first frame. The clock continues `previous`, unless the page is
    /// in another process since, whose clock begins again.
    pub(super) async fn stop(tab: &Tab, previous: Option<Self>) -> Result<Self> {
        let pause = SetVirtualTimePolicyParams::new(VirtualTimePolicy::Pause);
        let base = tab.session.call(&pause).await?.virtual_time_ticks_base;
        #[expect(clippy::float_cmp, reason = "the process repeats the same number")]
        let same_process = previous.filter(|previous| previous.base == base);
        let passed = same_process.map_or(0.0, |previous| previous.passed + FRAME_INTERVAL_MS);
        let clock = Self { base, passed, step: FRAME_INTERVAL_MS };
        clock.draw(tab).await?;
        Ok(clock)
    }

    /// The time that the page's frames carry.
    pub(super) fn now(&self) -> f64 {
        self.base + self.passed
    }

    /// Lets time pass until the page has loaded.
    pub(super) async fn run_until_loaded(&mut self, tab: &mut Tab) -> Result<()> {
        let mut loaded = false;
        while !loaded {
            self.pass(tab, self.step, |event| loaded |= event.is::<EventLoadEventFired>()).await?;
            self.draw(tab).await?;
        }
        Ok(())
    }

    /// Lets time pass: frame by frame while something moves, and in steps that double while nothing does.
    pub(super) async fn run(&mut self, tab: &mut Tab, milliseconds: u32) -> Result<()> {
        let end = self.passed + f64::from(milliseconds);
        while self.passed < end {
            let step = self.step.min(end - self.passed).max(1.0);
            self.pass(tab, step, |_| {}).await?;
            let moved = self.draw(tab).await?;
            self.step = if moved { FRAME_INTERVAL_MS } else { (self.step * 2.0).min(MAX_STEP_MS) };
        }
        Ok(())
    }

    async fn pass(&mut self, tab: &mut Tab, step: f64, mut observe: impl FnMut(&Event)) -> Result<()> {
        let mut policy = SetVirtualTimePolicyParams::new(VirtualTimePolicy::PauseIfNetworkFetchesPending);
        policy.budget = Some(step);
        policy.max_virtual_time_task_starvation_count = Some(MAX_TASKS_PER_STEP);
        tab.session.call(&policy).await?;
        tab.wait(|event| {
            observe(event);
            event.is::<EventVirtualTimeBudgetExpired>()
        })
        .await?;
        self.passed += step;
        Ok(())
    }

    /// Draws a frame; true if it changed the picture.
    async fn draw(&self, tab: &Tab) -> Result<bool> {
        let reply = tab.begin_frame(Some(self.now()), None).await?;
        Ok(reply.parse::<BeginFrameReturns>()?.has_damage)
    }
}
