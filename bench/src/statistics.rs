//! Rates, medians and percentiles.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    time::{Duration, Instant},
};

use anyhow::Result;

/// The result of a series of jobs.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    pub(crate) elapsed: Duration,
    /// Latencies of the successful jobs.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) errors: Vec<String>,
}

impl LoadResult {
    /// Collects the outcomes of jobs that started at `started` and have ended now.
    pub(crate) fn new(started: Instant, outcomes: impl IntoIterator<Item = Result<Duration>>) -> Self {
        let mut result = Self { elapsed: started.elapsed(), ..Self::default() };
        for outcome in outcomes {
            match outcome {
                Ok(latency) => result.latencies.push(latency),
                Err(error) => result.errors.push(format!("{error:#}")),
            }
        }
        result
    }

    /// Successful jobs per second.
    pub(crate) fn rate(&self) -> f64 {
        count(self.latencies.len()) / self.elapsed.as_secs_f64()
    }

    pub(crate) fn percentile_ms(&self, percent: usize) -> Option<f64> {
        percentile_ms(&self.latencies, percent)
    }
}

/// The percentile in milliseconds, by the nearest-rank method.
pub(crate) fn percentile_ms<'a>(
    latencies: impl IntoIterator<Item = &'a Duration>,
    percent: usize,
) -> Option<f64> {
    let mut sorted: Vec<Duration> = latencies.into_iter().copied().collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().map(milliseconds)
}

/// Percentiles in milliseconds, not numbers where there are no latencies.
pub(crate) fn percentiles_ms<const N: usize>(latencies: &[Duration], percents: [usize; N]) -> [f64; N] {
    percents.map(|percent| percentile_ms(latencies, percent).unwrap_or(f64::NAN))
}

/// How often each thing was seen.
#[derive(Debug)]
pub(crate) struct Tally<T>(pub(crate) BTreeMap<T, usize>);

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Tally<T> {
    pub(crate) fn add(&mut self, thing: T) {
        *self.0.entry(thing).or_default() += 1;
    }
}

impl<T: Ord> FromIterator<T> for Tally<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let mut tally = Self::default();
        things.into_iter().for_each(|thing| tally.add(thing));
        tally
    }
}

impl<T: Display> Display for Tally<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(thing, number)| format!("{number} × {thing}")).collect();
        f.write_str(&parts.join(", "))
    }
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    u32::try_from(bytes >> 10).map_or(f64::INFINITY, f64::from) / 1024.0
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// A count as a floating-point number.
pub(crate) fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

/// A number, or a dash where nothing was measured.
pub(crate) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
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
        assert!(percentiles_ms(&[], [50])[0].is_nan());
        assert!((mebibytes(3 << 20) - 3.0).abs() < 1e-9);
    }
}
