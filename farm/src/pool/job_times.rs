//! For how long recent jobs had their browsers.

use std::{collections::VecDeque, time::Duration};

/// Weight of the latest job in the moving average, which about the last ten jobs determine.
const LATEST_WEIGHT: f64 = 0.2;
/// Jobs that determine the likely maximum.
const MAX_RECENT: usize = 64;
/// The likely maximum is the time that one job in this number exceeds.
const EXCEEDING_DIVISOR: usize = 20;

/// The times of recent jobs.
#[derive(Debug, Default)]
pub(super) struct JobTimes {
    /// `None` before the first job has ended.
    pub(super) average_seconds: Option<f64>,
    /// The most recent last.
    recent: VecDeque<Duration>,
    likely_max: Duration,
}

impl JobTimes {
    pub(super) fn record(&mut self, held: Duration) {
        let latest = held.as_secs_f64();
        let average =
            self.average_seconds.map_or(latest, |average| average + LATEST_WEIGHT * (latest - average));
        self.average_seconds = Some(average);
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(held);
        let mut sorted: Vec<_> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        self.likely_max = sorted[sorted.len() - 1 - sorted.len() / EXCEEDING_DIVISOR];
    }

    /// The time that 19 of 20 recent jobs did not exceed.
    pub(super) fn likely_max(&self) -> Duration {
        self.likely_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_job_in_twenty_does_not_count_and_two_do() {
        const FAST: Duration = Duration::from_millis(70);
        const SLOW: Duration = Duration::from_secs(5);
        let mut times = JobTimes::default();
        assert_eq!(times.likely_max(), Duration::ZERO);
        (0..39).for_each(|_| times.record(FAST));
        times.record(SLOW);
        times.record(SLOW);
        assert_eq!(times.likely_max(), FAST);
        times.record(SLOW);
        assert_eq!(times.likely_max(), SLOW);
        (0..MAX_RECENT).for_each(|_| times.record(FAST));
        assert_eq!(times.likely_max(), FAST);
    }
}
