//! The measurements of one renderer on one page.
//!
//! Invariant: rates and CPU times are medians over rounds, latencies are of all rounds together. A failed
//! job does not count as a job, but its CPU time is included.

use std::time::Duration;

use crate::statistics::{LoadResult, count, median, milliseconds, percentile_ms};

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) result: LoadResult,
    /// CPU time of the whole process tree, including cleanup.
    pub(crate) cpu_time: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Measurement {
    pub(crate) rounds: Vec<Round>,
    /// Size of the file that was decoded.
    pub(crate) file_bytes: usize,
    /// Number of its pages.
    pub(crate) file_pages: usize,
    pub(crate) peak_memory_bytes: u64,
    /// Why the file that was decoded is wrong.
    pub(crate) file_error: Option<String>,
    /// Images and fonts fetched per job, on the page that has them.
    pub(crate) fetches_per_job: Option<f64>,
}

impl Measurement {
    /// Number of successful jobs.
    pub(crate) fn jobs(&self) -> usize {
        self.rounds.iter().map(|round| round.result.latencies.len()).sum()
    }

    /// Number of failed jobs.
    pub(crate) fn errors(&self) -> usize {
        self.rounds.iter().map(|round| round.result.errors.len()).sum()
    }

    pub(crate) fn first_error(&self) -> Option<&str> {
        let of_rounds = || self.rounds.iter().find_map(|round| round.result.errors.first());
        self.file_error.as_ref().or_else(of_rounds).map(String::as_str)
    }

    /// Successful jobs per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        median(self.rounds.iter().map(|round| round.result.rate()).collect())
    }

    /// CPU milliseconds per successful job.
    pub(crate) fn cpu_ms(&self) -> Option<f64> {
        let successful = self.rounds.iter().filter(|round| !round.result.latencies.is_empty());
        median(
            successful
                .map(|round| milliseconds(round.cpu_time) / count(round.result.latencies.len()))
                .collect(),
        )
    }

    pub(crate) fn latency_ms(&self, percent: usize) -> Option<f64> {
        percentile_ms(self.rounds.iter().flat_map(|round| &round.result.latencies), percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_failed_jobs_is_included() {
        let result = LoadResult {
            elapsed: Duration::from_secs(1),
            latencies: vec![Duration::from_millis(5); 2],
            errors: vec!["broken".to_owned()],
        };
        let rounds = vec![Round { result, cpu_time: Duration::from_millis(30) }];
        let measurement = Measurement { rounds, ..Measurement::default() };
        assert_eq!(measurement.cpu_ms(), Some(15.0));
        assert_eq!(measurement.rate(), Some(2.0));
        let counts = (measurement.jobs(), measurement.errors(), measurement.first_error());
        assert_eq!(counts, (2, 1, Some("broken")));
    }
}
