//! The time that a job still has to wait, in milliseconds.

use tokio::time::Instant;

use super::load_state::LoadState;

/// The network is idle after this time without a request in progress.
const NETWORK_IDLE_MS: f64 = 500.0;
/// A step in real time is late if it takes this much longer than it should.
const MIN_LATENESS_MS: f64 = 4.0;
/// Limit of the time of late steps that is not counted, as a share of the job's time beyond its wait. Without
/// a limit, a page that always gets too little CPU time would reach its deadline.
const MAX_UNCOUNTED_SHARE: f64 = 0.5;
/// Times shorter than this are rounding errors and count as zero.
const EPSILON_MS: f64 = 0.001;

/// The remaining wait: first until the network is idle, then a fixed time.
pub(super) struct RemainingWait {
    /// Time without a request in progress that is left until the network is idle.
    idle_ms: f64,
    /// When the latest request started or ended.
    since: Instant,
    /// Time that is left after the network is idle.
    fixed_ms: f64,
    /// Time in which an element may still appear; `None` if none is awaited.
    element_ms: Option<f64>,
    /// Time of late steps that may still be left uncounted.
    uncounted_ms: f64,
}

impl RemainingWait {
    /// A wait for the network to be idle, if `network_idle`, and then for `fixed_ms`, and at the same time for an
    /// element, if `element`. `since` is when the latest request started or ended.
    pub(super) fn new(
        network_idle: bool,
        fixed_ms: f64,
        element: bool,
        since: Instant,
        deadline: Instant,
    ) -> Self {
        let idle_ms = if network_idle { NETWORK_IDLE_MS } else { 0.0 };
        let left_ms = deadline.saturating_duration_since(Instant::now()).as_secs_f64() * 1_000.0;
        let uncounted_ms = MAX_UNCOUNTED_SHARE * (left_ms - idle_ms - fixed_ms).max(0.0);
        Self { idle_ms, since, fixed_ms, element_ms: element.then_some(left_ms), uncounted_ms }
    }

    pub(super) fn is_over(&self) -> bool {
        self.element_ms.is_none() && self.is_idle() && self.fixed_ms < EPSILON_MS
    }

    /// Whether an element is awaited, and for how much longer.
    pub(super) fn element_ms(&self) -> Option<f64> {
        self.element_ms
    }

    /// The element has appeared.
    pub(super) fn found_element(&mut self) {
        self.element_ms = None;
    }

    fn is_idle(&self) -> bool {
        self.idle_ms < EPSILON_MS
    }

    /// Time until the next frame, which is due after `interval_ms`, or until the end if that is earlier.
    pub(super) fn until_frame(&self, interval_ms: f64) -> f64 {
        let left_ms = if self.is_idle() { self.fixed_ms } else { self.idle_ms };
        if self.element_ms.is_some() && left_ms < EPSILON_MS { interval_ms } else { interval_ms.min(left_ms) }
    }

    /// How long a request may stop the page's clock: without limit until the network is idle and the element has
    /// appeared, and at most the fixed time afterwards, because a request may never end.
    pub(super) fn request_timeout_ms(&self) -> f64 {
        if self.is_idle() && self.element_ms.is_none() { self.fixed_ms } else { f64::INFINITY }
    }

    /// Ignores requests that started or ended until `since`, because the job has already waited for them.
    pub(super) fn ignore_requests_until(&mut self, since: Instant) {
        self.since = since;
    }

    /// The part of a step in real time that counts. The step took `passed_ms` instead of `step_ms`. If it is
    /// late, because the renderer was stopped or had no CPU, only `step_ms` and the browser's CPU time count:
    /// the page could not run in the rest. `cpu_ms` is called only for a late step.
    pub(super) fn counted_ms(&mut self, passed_ms: f64, step_ms: f64, cpu_ms: impl FnOnce() -> f64) -> f64 {
        if passed_ms <= step_ms + MIN_LATENESS_MS {
            return passed_ms;
        }
        let uncounted_ms = (passed_ms - step_ms - cpu_ms()).clamp(0.0, self.uncounted_ms);
        self.uncounted_ms -= uncounted_ms;
        passed_ms - uncounted_ms
    }

    /// Subtracts a step of the page, which is now in `state`.
    pub(super) fn pass(&mut self, step_ms: f64, state: &LoadState) {
        self.element_ms = self.element_ms.map(|left_ms| left_ms - step_ms);
        if self.is_idle() {
            self.fixed_ms = (self.fixed_ms - step_ms).max(0.0);
        } else if state.since != self.since || !state.is_quiet(Instant::now()) {
            self.idle_ms = NETWORK_IDLE_MS;
            self.since = state.since;
        } else {
            self.idle_ms -= step_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_without_cpu_is_not_counted_up_to_a_limit() {
        let now = Instant::now();
        let mut wait = RemainingWait::new(false, 1_000.0, false, now, now + Duration::from_secs(11));
        let mut count = |passed_ms, used_ms| wait.counted_ms(passed_ms, 16.0, || used_ms - 16.0).round();
        assert!((count(18.0, 16.0) - 18.0).abs() < EPSILON_MS, "in time");
        assert!((count(500.0, 20.0) - 20.0).abs() < EPSILON_MS, "stopped");
        assert!((count(100.0, 150.0) - 100.0).abs() < EPSILON_MS, "busy on several cores");
        assert!((count(4_600.0, 100.0) - 100.0).abs() < EPSILON_MS, "stopped for long");
        // 20 ms may still be left uncounted.
        assert!((count(100.0, 16.0) - 80.0).abs() < EPSILON_MS);
        assert!((count(100.0, 16.0) - 100.0).abs() < EPSILON_MS);
    }
}
