//! How a job waits, and the time that it still has to wait, in milliseconds.

use std::time::Duration;

use platen_shared::{
    format::{OutputFormat, WaitUntil},
    job::RenderJob,
};
use tokio::time::Instant;

use super::{
    load_state::{LoadState, MAX_OPEN_TIME},
    rendering::Rendering,
    wait_plan::Awaited,
};

/// The network is idle after this time without a request in progress.
const NETWORK_IDLE_MS: f64 = 500.0;
/// Waits for the network to be idle, for a navigation and for resources end before the deadline by this time. Then the page is
/// captured as it is.
const CAPTURE_RESERVE: Duration = Duration::from_secs(2);
/// Times shorter than this are rounding errors and count as zero.
const EPSILON_MS: f64 = 0.001;

impl Rendering<'_> {
    /// The end of a wait for something without which the page can be captured as well: after this time, and early enough
    /// before the deadline.
    pub(super) fn until(&self, longest: Duration) -> Instant {
        (Instant::now() + longest).min(self.last_wait())
    }

    /// When such waits end at the latest.
    pub(super) fn last_wait(&self) -> Instant {
        self.deadline.checked_sub(CAPTURE_RESERVE).unwrap_or(self.deadline)
    }

    pub(super) fn waits_for_idle_network(&self) -> bool {
        self.job.options.wait_until == WaitUntil::NetworkIdle
    }

    /// What is waited for after the milestone, of which `wait_ms` is the time.
    pub(super) fn awaited(&self, wait_ms: f64) -> Awaited {
        let options = &self.job.options;
        if options.wait_for_selector.is_some() || options.wait_for_function.is_some() {
            Awaited::Condition
        } else if self.waits_for_idle_network() || wait_ms > 0.0 {
            Awaited::Time
        } else {
            Awaited::Nothing
        }
    }

    /// Whether to wait for fonts, images and style sheets.
    pub(super) fn waits_for_resources(&self) -> bool {
        self.job.options.wait_until != WaitUntil::DomContentLoaded
    }

    /// Whether the file shows a drawn frame, as opposed to a PDF.
    pub(super) fn needs_frame(&self) -> bool {
        matches!(self.job.options.output.format(), OutputFormat::Image(_))
    }
}

/// The time that a job waits in real time, at least.
pub(crate) fn real_wait(job: &RenderJob) -> Duration {
    Duration::try_from_secs_f64(job.options.wait_for_timeout.get() / 1_000.0).unwrap_or_default()
}

/// The remaining wait: first until the network is idle, then a fixed time.
pub(super) struct RemainingWait {
    /// Time without a request in progress that is left until the network is idle.
    idle_ms: f64,
    /// When the latest request that counts started or ended.
    pub(super) since: Option<Instant>,
    /// Time that is left after the network is idle.
    fixed_ms: f64,
    /// Time in which the conditions may still become true; `None` if none is awaited.
    pub(super) condition_ms: Option<f64>,
    /// When a wait for a request ends at the latest.
    last: Instant,
    /// The network is to be idle.
    network_idle: bool,
    /// The network was not idle in time.
    was_cut_off: bool,
    /// The instant until which real time has been subtracted.
    pub(super) at: Instant,
}

impl RemainingWait {
    /// The wait of a job whose document has reached its milestone: at least `wait_ms` after that.
    pub(super) fn new(rendering: &Rendering<'_>, wait_ms: f64) -> Self {
        let condition = rendering.awaited(wait_ms) == Awaited::Condition;
        let (last, deadline) = (rendering.last_wait(), rendering.deadline);
        let wait = Self::begin(rendering.waits_for_idle_network(), wait_ms, condition, last, deadline);
        Self { since: rendering.load_state().requests.since, ..wait }
    }

    /// A wait for the network to be idle, if `network_idle`, and then for `fixed_ms`, and at the same time for
    /// conditions, if `condition`. `last` is when a wait for a request ends.
    fn begin(network_idle: bool, fixed_ms: f64, condition: bool, last: Instant, deadline: Instant) -> Self {
        let at = Instant::now();
        let left_ms = deadline.saturating_duration_since(at).as_secs_f64() * 1_000.0;
        Self {
            idle_ms: if network_idle { NETWORK_IDLE_MS } else { 0.0 },
            since: None,
            fixed_ms,
            condition_ms: condition.then_some(left_ms),
            last,
            network_idle,
            was_cut_off: false,
            at,
        }
    }

    /// Whether nothing is open that a wait for the network to be idle has left out.
    pub(super) fn is_complete(&self, state: &LoadState) -> bool {
        !self.network_idle || !self.was_cut_off && !state.is_requesting(Instant::now())
    }

    pub(super) fn is_over(&self) -> bool {
        self.condition_ms.is_none() && self.is_idle() && self.fixed_ms < EPSILON_MS
    }

    fn is_idle(&self) -> bool {
        self.idle_ms < EPSILON_MS
    }

    /// Time until the next frame, which is due after `interval_ms`, or until the end if that is earlier.
    pub(super) fn until_frame(&self, interval_ms: f64) -> f64 {
        let left_ms = if self.is_idle() { self.fixed_ms } else { self.idle_ms };
        if self.condition_ms.is_some() && left_ms < EPSILON_MS {
            interval_ms
        } else {
            interval_ms.min(left_ms)
        }
    }

    pub(super) fn next_frame(&self, interval_ms: f64) -> Instant {
        self.at + Duration::from_secs_f64(self.until_frame(interval_ms) / 1_000.0)
    }

    /// How long a request may stop the page's clock: as long as it counts until the network is idle and the conditions are
    /// true, and at most the fixed time afterwards, because a request may never end.
    pub(super) fn request_timeout_ms(&self) -> f64 {
        if self.is_idle() && self.condition_ms.is_none() {
            return self.fixed_ms;
        }
        self.last.saturating_duration_since(Instant::now()).min(MAX_OPEN_TIME).as_secs_f64() * 1_000.0
    }

    /// Subtracts the real time since the last call, or since the beginning of the wait.
    pub(super) fn pass_real_time(&mut self, state: &LoadState) {
        self.pass(self.at.elapsed().as_secs_f64() * 1_000.0, state);
    }

    /// Subtracts a step of the page, which is now in `state`.
    pub(super) fn pass(&mut self, step_ms: f64, state: &LoadState) {
        self.at = Instant::now();
        self.condition_ms = self.condition_ms.map(|left_ms| left_ms - step_ms);
        if !self.is_over() && self.network_idle && self.at >= self.last {
            self.was_cut_off |= !self.is_idle();
            (self.idle_ms, self.fixed_ms) = (0.0, 0.0);
        } else if self.is_idle() {
            self.fixed_ms = (self.fixed_ms - step_ms).max(0.0);
        } else if state.requests.since != self.since || !state.is_quiet(self.at) {
            self.idle_ms = NETWORK_IDLE_MS;
            self.since = state.requests.since;
        } else {
            self.idle_ms -= step_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn real_time_counts_in_full() {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut wait = RemainingWait::begin(false, 3_000.0, false, deadline, deadline);
        for late_ms in [16, 400, 1_600, 984] {
            assert!(!wait.is_over());
            advance(Duration::from_millis(late_ms)).await;
            wait.pass_real_time(&LoadState::empty());
        }
        assert!(wait.is_over());
        let mut wait = RemainingWait::begin(false, 100.0, false, deadline, deadline);
        advance(Duration::from_millis(100)).await;
        wait.at = Instant::now();
        wait.pass_real_time(&LoadState::empty());
        assert!(!wait.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_stops_the_clock_no_longer_than_it_counts() {
        let (now, deadline) = (Instant::now(), Instant::now() + Duration::from_secs(30));
        let stops_for = |network_idle, condition, seconds| {
            let last = now + Duration::from_secs(seconds);
            RemainingWait::begin(network_idle, 700.0, condition, last, deadline).request_timeout_ms()
        };
        for (found, expected) in [
            (stops_for(false, false, 28), 700.0),
            (stops_for(true, false, 28), 10_000.0),
            (stops_for(false, true, 28), 10_000.0),
            (stops_for(true, false, 3), 3_000.0),
            (stops_for(false, true, 3), 3_000.0),
        ] {
            assert!((found - expected).abs() < EPSILON_MS, "{found} instead of {expected}");
        }
    }
}
