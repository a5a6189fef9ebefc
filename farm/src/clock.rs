//! The clock of a page whose time the farm passes on by itself.
//!
//! Invariant: frames of such a page carry times that only grow, because one that goes back is never
//! drawn. A renderer cannot leave virtual time again, so a clock stays with its page; while a page
//! waits for a job its clock stands still, and what it was ahead of the real time melts away. Left to
//! others: when time passes, and how (render).

use tokio::time::Instant;

/// A page whose dates are further ahead than this is not given to a job.
const MOST_LEAD: f64 = 2_000.0;
/// The least by which a frame must be later than the one before, in milliseconds.
const TICK: f64 = 0.01;

/// A page's own time. All times are milliseconds; points in time are the browser's ticks.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// What it showed when virtual time began.
    base: f64,
    /// When that was.
    began: Instant,
    now: f64,
    latest_frame: f64,
    /// Some time passed of which nobody knows how much.
    lost: bool,
}

impl Clock {
    /// A clock that shows `base` at this moment, as the real one does.
    pub(crate) fn new(base: f64, began: Instant) -> Self {
        Self { base, began, now: base, latest_frame: base, lost: false }
    }

    /// So much time has passed on the page.
    pub(crate) fn pass(&mut self, milliseconds: f64) {
        self.now += milliseconds;
    }

    /// The page has another process, whose time began at `base`.
    pub(crate) fn rebase(&mut self, base: f64) {
        #[expect(clippy::float_cmp, reason = "the same number comes back as long as it is the same clock")]
        if base != self.base {
            *self = Self { latest_frame: self.latest_frame, lost: true, ..Self::new(base, Instant::now()) };
        }
    }

    /// What it shows is not known any more.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// By how much the page is ahead of the real time; negative when it is behind.
    pub(crate) fn lead(&self, at: Instant) -> f64 {
        (self.now - self.base) - at.duration_since(self.began).as_secs_f64() * 1_000.0
    }

    /// Whether what it shows is known, so that it can be set right for the next job.
    pub(crate) fn is_known(&self) -> bool {
        !self.lost
    }

    /// Whether its dates are near enough to the real ones for a job.
    pub(crate) fn is_right(&self, at: Instant) -> bool {
        self.lead(at) <= MOST_LEAD
    }

    /// The time of the next frame.
    pub(crate) fn next_frame(&mut self) -> f64 {
        self.latest_frame = self.now.max(self.latest_frame + TICK);
        self.latest_frame
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_it_is_ahead_melts_away() {
        let start = Instant::now();
        let mut clock = Clock::new(5_000.0, start);
        clock.pass(3_000.0);
        assert!(!clock.is_right(start));
        let later = start + Duration::from_secs(1);
        assert!(clock.is_right(later) && (clock.lead(later) - 2_000.0).abs() < 0.001);
        let much_later = start + Duration::from_secs(10);
        assert!((clock.lead(much_later) + 7_000.0).abs() < 0.001);
    }

    #[test]
    fn frames_never_go_back() {
        let mut clock = Clock::new(100.0, Instant::now());
        let first = clock.next_frame();
        assert!(first > 100.0 && clock.next_frame() > first);
        clock.pass(16.0);
        let third = clock.next_frame();
        assert!((third - 116.0).abs() < f64::EPSILON);
        clock.rebase(50.0);
        assert!(clock.next_frame() > third && !clock.is_known());
    }
}
