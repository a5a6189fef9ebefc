//! A page's virtual time, moved on in steps with a frame behind each.
//!
//! Invariant: the time of frames never goes backwards, which would hang them; time does not pass
//! while something is on its way over the network.

use anyhow::Result;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use super::{
    cdp::Event,
    page::{LOADED, Tab},
};

/// A frame at 60 a second, in whole milliseconds.
pub(super) const FRAME_MS: f64 = 16.0;
/// The longest step while nothing moves.
const LONGEST_MS: f64 = 128.0;
const EXPIRED: &str = "Emulation.virtualTimeBudgetExpired";

/// The time of one page.
pub(super) struct Clock {
    base: f64,
    passed: f64,
    step: f64,
}

impl Clock {
    /// Stops the page's time and draws its first frame. The clock goes on from the page's last one,
    /// unless it is in another process by now, which begins anew.
    pub(super) async fn stop(tab: &Tab, last: Option<Self>) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stopped {
            virtual_time_ticks_base: f64,
        }
        let stopped: Stopped =
            tab.ask("Emulation.setVirtualTimePolicy", json!({ "policy": "pause" })).await?;
        let base = stopped.virtual_time_ticks_base;
        #[expect(clippy::float_cmp, reason = "the very number it gave last time")]
        let same = last.filter(|last| last.base == base);
        let passed = same.map_or(0.0, |last| last.passed + FRAME_MS);
        let clock = Self { base, passed, step: FRAME_MS };
        tab.frame(Some(&clock), None).await?;
        Ok(clock)
    }

    /// Milliseconds on the clock that frames are told.
    pub(super) fn now(&self) -> f64 {
        self.base + self.passed
    }

    /// Lets time pass until the page has loaded.
    pub(super) async fn until_loaded(mut self, tab: &Tab, events: &mut Receiver<Event>) -> Result<Self> {
        loop {
            tab.call("Emulation.setVirtualTimePolicy", policy(self.step)).await?;
            let mut loaded = false;
            while &*tab.wait(events, &[LOADED, EXPIRED]).await? == LOADED {
                loaded = true;
            }
            self.passed += self.step;
            tab.frame(Some(&self), None).await?;
            if loaded {
                return Ok(self);
            }
        }
    }

    /// Lets so many milliseconds pass: frame by frame while something moves, in longer and longer
    /// steps while nothing does.
    pub(super) async fn run(&mut self, tab: &Tab, events: &mut Receiver<Event>, ms: u32) -> Result<()> {
        let end = self.passed + f64::from(ms);
        while self.passed < end {
            let step = self.step.min(end - self.passed).max(1.0);
            tab.call("Emulation.setVirtualTimePolicy", policy(step)).await?;
            tab.wait(events, &[EXPIRED]).await?;
            self.passed += step;
            let moved = tab.frame(Some(self), None).await?.has_damage;
            self.step = if moved { FRAME_MS } else { (self.step * 2.0).min(LONGEST_MS) };
        }
        Ok(())
    }
}

fn policy(budget: f64) -> serde_json::Value {
    json!({
        "policy": "pauseIfNetworkFetchesPending", "budget": budget, "maxVirtualTimeTaskStarvationCount": 1000,
    })
}
