//! The deadline of a request.
//!
//! Invariant: a request is answered before [`Deadline::answer_time_left`] has passed, which ends within a second
//! after its deadline.

use std::time::{Duration, Instant};

/// A job with less time is not sent to a farm, because no page renders within it.
pub const MIN_RENDER_TIME: Duration = Duration::from_millis(100);
/// The time for what follows the deadline: the refusal of a late job, and its refund.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(900);

/// The instant until which a request is rendered.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    min_render_time: Duration,
}

impl Deadline {
    /// The deadline of a request that arrived now, after it had waited for `age` in the server.
    #[must_use]
    pub fn new(now: Instant, timeout: Duration, age: Duration) -> Self {
        let at = (now + timeout).checked_sub(age).unwrap_or(now);
        Self { at, min_render_time: MIN_RENDER_TIME.min(timeout / 2) }
    }

    /// Adds the time in which the body arrived.
    pub fn add_body_time(&mut self, elapsed: Duration) {
        self.at += elapsed;
    }

    /// The deadline as an instant.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The time until the deadline.
    #[must_use]
    pub fn time_left(&self, now: Instant) -> Duration {
        self.at.saturating_duration_since(now)
    }

    /// Whether so little time is left that nothing can be rendered.
    #[must_use]
    pub fn is_too_close(&self, now: Instant) -> bool {
        self.time_left(now) < self.min_render_time
    }

    /// The time until the request has to be answered in any case.
    #[must_use]
    pub fn answer_time_left(&self, now: Instant) -> Duration {
        (self.at + ANSWER_TIMEOUT).saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_in_the_server_counts_and_the_body_does_not() {
        let (now, second) = (Instant::now() + Duration::from_secs(100), Duration::from_secs(1));
        let mut deadline = Deadline::new(now, 30 * second, 12 * second);
        assert_eq!(deadline.time_left(now), 18 * second);
        deadline.add_body_time(5 * second);
        assert_eq!(deadline.time_left(now + 5 * second), 18 * second);
    }

    #[test]
    fn nothing_is_rendered_when_too_little_time_is_left() {
        let (now, second) = (Instant::now() + Duration::from_secs(100), Duration::from_secs(1));
        let deadline = Deadline::new(now, 30 * second, Duration::ZERO);
        let last = Duration::from_millis(29_900);
        assert!(!deadline.is_too_close(now + last));
        assert!(deadline.is_too_close(now + last + Duration::from_millis(1)));
        assert!(deadline.answer_time_left(now + 30 * second) < second);
        assert_eq!(deadline.answer_time_left(now + 31 * second), Duration::ZERO);
        // A deadline that the operator sets below the minimum is kept.
        let short = Deadline::new(now, Duration::from_millis(50), Duration::ZERO);
        assert!(!short.is_too_close(now) && short.is_too_close(now + Duration::from_millis(30)));
    }

    #[test]
    fn an_age_beyond_all_bounds_leaves_no_time() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        for age in [31 * second, Duration::from_millis(u64::MAX)] {
            assert!(Deadline::new(now, 30 * second, age).is_too_close(now), "{age:?}");
        }
    }
}
