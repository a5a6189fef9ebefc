//! What is left of a job's wait.

use tokio::time::Instant;

use super::load_state::LoadState;

/// How long no request may be in progress for the network to count as idle, in milliseconds.
const NETWORK_IDLE: f64 = 500.0;
/// A step in real time that takes so many milliseconds longer than it should is late.
const LATE: f64 = 4.0;
/// Most time of late steps that is not counted, as a part of the time that the job has beyond its wait. A
/// page that gets too little CPU time all along would reach its deadline otherwise.
const MAX_UNCOUNTED: f64 = 0.5;
/// What is less than this is nothing: a rest of rounding, in milliseconds.
const ROUNDING: f64 = 0.001;

/// What is left to wait for, in milliseconds.
pub(super) struct RemainingWait {
    /// Without a request in progress, first.
    quiet: f64,
    /// When a request began or ended last.
    since: Instant,
    /// After that.
    time: f64,
    /// Time of late steps that need not be counted.
    uncounted: f64,
}

impl RemainingWait {
    /// For the network to be idle, if wanted, and then so many milliseconds. `since` is when a request
    /// began or ended last.
    pub(super) fn new(network_idle: bool, time: f64, since: Instant, deadline: Instant) -> Self {
        let quiet = if network_idle { NETWORK_IDLE } else { 0.0 };
        let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64() * 1_000.0;
        Self { quiet, since, time, uncounted: MAX_UNCOUNTED * (left - quiet - time).max(0.0) }
    }

    pub(super) fn is_none(&self) -> bool {
        self.quiet < ROUNDING && self.time < ROUNDING
    }

    /// What is left until the next frame, which is due after so many milliseconds, or the end.
    pub(super) fn until_frame(&self, interval: f64) -> f64 {
        interval.min(if self.quiet < ROUNDING { self.time } else { self.quiet })
    }

    /// How long a request may hold up a page's clock: a page may have a request that never ends, but it is
    /// not captured before its network is idle, if that is what it is waited for.
    pub(super) fn patience(&self) -> f64 {
        if self.quiet < ROUNDING { self.time } else { f64::INFINITY }
    }

    /// Requests that ended before this were waited for.
    pub(super) fn resume(&mut self, since: Instant) {
        self.since = since;
    }

    /// How much of a step in real time counts. It should have taken `step`, and `passed` is how long it
    /// took. One that comes late because the renderer was stopped, or because others had the CPU, counts
    /// no more than `step` and the CPU time that the browser took, which is asked for only then: the page
    /// has not lived through the rest.
    pub(super) fn count_late(&mut self, passed: f64, step: f64, cpu: impl FnOnce() -> f64) -> f64 {
        if passed <= step + LATE {
            return passed;
        }
        let uncounted = (passed - step - cpu()).clamp(0.0, self.uncounted);
        self.uncounted -= uncounted;
        passed - uncounted
    }

    /// So many milliseconds have passed on the page, and this is its state now.
    pub(super) fn pass(&mut self, milliseconds: f64, state: &LoadState) {
        if self.quiet < ROUNDING {
            self.time -= milliseconds;
        } else if state.since != self.since || !state.is_quiet(Instant::now()) {
            self.quiet = NETWORK_IDLE;
            self.since = state.since;
        } else {
            self.quiet -= milliseconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_that_a_page_has_not_lived_through_is_not_counted_up_to_a_limit() {
        let now = Instant::now();
        let mut wait = RemainingWait::new(false, 1_000.0, now, now + Duration::from_secs(11));
        let mut count = |passed, used| wait.count_late(passed, 16.0, || used - 16.0).round();
        assert!((count(18.0, 16.0) - 18.0).abs() < ROUNDING, "in time");
        assert!((count(500.0, 20.0) - 20.0).abs() < ROUNDING, "stopped");
        assert!((count(100.0, 150.0) - 100.0).abs() < ROUNDING, "busy on several cores");
        assert!((count(4_600.0, 100.0) - 100.0).abs() < ROUNDING, "stopped for long");
        // 20 ms are left.
        assert!((count(100.0, 16.0) - 80.0).abs() < ROUNDING);
        assert!((count(100.0, 16.0) - 100.0).abs() < ROUNDING);
    }
}
