//! What was measured of one side on one page.
//!
//! Invariant: rates and costs are medians over rounds, latencies are of all rounds together, and a
//! job that failed counts in neither: its cost weighs on those that did not.

use std::time::Duration;

use super::drive::Seen;

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) seen: Seen,
    /// Of the whole tree, until it had cleaned up.
    pub(crate) cpu: Duration,
}

/// All rounds of one side on one page.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rounds: Vec<Round>,
    /// Bytes of the file that was looked at.
    pub(crate) bytes: usize,
    /// Its pages.
    pub(crate) pages: usize,
    /// Highest memory seen, in bytes.
    pub(crate) memory: u64,
    /// What was wrong with the file that was looked at.
    pub(crate) wrong: Option<String>,
    /// Pictures and fonts fetched a job, where the page has such.
    pub(crate) fetches: Option<f64>,
}

impl Figures {
    /// Jobs answered well.
    pub(crate) fn jobs(&self) -> usize {
        self.rounds.iter().map(|round| round.seen.latencies.len()).sum()
    }

    /// Jobs that failed.
    pub(crate) fn errors(&self) -> usize {
        self.rounds.iter().map(|round| round.seen.errors.len()).sum()
    }

    /// The first thing that went wrong.
    pub(crate) fn first_error(&self) -> Option<&str> {
        let of_rounds = || self.rounds.iter().find_map(|round| round.seen.errors.first());
        self.wrong.as_ref().or_else(of_rounds).map(String::as_str)
    }

    /// Good answers a second.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.median(|round| Some(count(round.seen.latencies.len()) / round.seen.elapsed.as_secs_f64()))
    }

    /// CPU time a job in milliseconds.
    pub(crate) fn cpu_ms(&self) -> Option<f64> {
        self.median(|round| {
            let jobs = round.seen.latencies.len();
            (jobs > 0).then(|| round.cpu.as_secs_f64() * 1_000.0 / count(jobs))
        })
    }

    /// The latency that this share of the jobs did not pass, in milliseconds.
    pub(crate) fn latency_ms(&self, percent: usize) -> Option<f64> {
        percentile_ms(self.rounds.iter().flat_map(|round| &round.seen.latencies), percent)
    }

    fn median(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
        median(self.rounds.iter().filter_map(figure).collect())
    }
}

/// By nearest rank.
pub(crate) fn percentile_ms<'a>(
    latencies: impl IntoIterator<Item = &'a Duration>,
    percent: usize,
) -> Option<f64> {
    let mut sorted: Vec<Duration> = latencies.into_iter().copied().collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    Some(sorted.get(rank - 1)?.as_secs_f64() * 1_000.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

/// A count as a number to divide by.
pub(crate) fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
        let latencies: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile_ms(&latencies, 50), Some(50.0));
        assert_eq!(percentile_ms(&latencies, 99), Some(99.0));
        assert_eq!(percentile_ms(&[], 50), None);
    }

    #[test]
    fn failed_jobs_weigh_on_the_others() {
        let seen = Seen {
            elapsed: Duration::from_secs(1),
            latencies: vec![Duration::from_millis(5); 2],
            errors: vec!["broken".to_owned()],
        };
        let figures =
            Figures { rounds: vec![Round { seen, cpu: Duration::from_millis(30) }], ..Figures::default() };
        assert_eq!(figures.cpu_ms(), Some(15.0));
        assert_eq!(figures.rate(), Some(2.0));
        assert_eq!((figures.jobs(), figures.errors(), figures.first_error()), (2, 1, Some("broken")));
    }
}
