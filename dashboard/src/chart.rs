//! A bar chart of attempts per day.
//!
//! Invariant: positions are whole units of a fixed view box. The page draws them as inline SVG without
//! `style` attributes, which its content security policy forbids.

use platen_statements::{Timestamp, usage::DayUsage};
use time::Duration;

use crate::format::DAY_SECONDS;

/// Days of the charts and counts.
pub(crate) const DAYS_SHOWN: i64 = 30;
pub(crate) const WIDTH: u32 = 720;
/// Height of the view box, without labels.
pub(crate) const HEIGHT: u32 = 140;

/// A time in the first of the days that are shown.
pub(crate) fn first_day(now: i64) -> i64 {
    now - (DAYS_SHOWN - 1) * DAY_SECONDS
}

/// A bar: all attempts of a day, with the failed ones in front.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) day: DayUsage,
    /// Left edge.
    pub(crate) x: u32,
    pub(crate) width: u32,
    /// Upper edge of all attempts.
    pub(crate) y: u32,
    /// Height of all attempts.
    pub(crate) height: u32,
    /// Upper edge of the failed attempts, which start at the bottom.
    pub(crate) failed_y: u32,
    /// Height of the failed attempts.
    pub(crate) failed_height: u32,
}

/// A bar for each day, and the sums.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// The bars, oldest day first.
    pub(crate) bars: Vec<Bar>,
    /// The number of attempts that fills the full height: an even one, so that half of it is a number too.
    pub(crate) max: u64,
    /// The most attempts of a day.
    pub(crate) most: u64,
    pub(crate) attempts: u64,
    pub(crate) failures: u64,
}

impl Chart {
    /// Lays out these days, oldest first.
    pub(crate) fn new(days: Vec<DayUsage>) -> Self {
        let attempts = days.iter().map(|day| day.attempts).sum();
        let failures = days.iter().map(|day| day.failures).sum();
        let most = days.iter().map(|day| day.attempts.max(day.failures)).max().unwrap_or(0);
        let max = scale(most);
        let slot = WIDTH / u32::try_from(days.len().max(1)).unwrap_or(WIDTH);
        let scaled = |count: u64| {
            let height = count.saturating_mul(u64::from(HEIGHT)) / max;
            // At least two units, so that one attempt among a million is visible.
            u32::try_from(height).unwrap_or(HEIGHT).max(u32::from(count > 0) * 2)
        };
        let bars = days
            .into_iter()
            .zip(0..)
            .map(|(day, index)| {
                let (height, failed_height) = (scaled(day.attempts), scaled(day.failures));
                Bar {
                    x: index * slot + slot / 8,
                    width: slot - slot / 4,
                    y: HEIGHT - height,
                    height,
                    failed_y: HEIGHT - failed_height,
                    failed_height,
                    day,
                }
            })
            .collect();
        Self { bars, max, most, attempts, failures }
    }

    /// The oldest day; empty without days.
    pub(crate) fn first_day(&self) -> &str {
        self.bars.first().map_or("", |bar| &bar.day.day)
    }

    /// The latest day; empty without days.
    pub(crate) fn last_day(&self) -> &str {
        self.bars.last().map_or("", |bar| &bar.day.day)
    }
}

/// The smallest number from this one on that has an even digit, or 10, and zeros.
fn scale(most: u64) -> u64 {
    let digits = most.saturating_sub(1).checked_ilog10().unwrap_or(0);
    let step = 2 * 10_u64.pow(digits.min(18));
    most.max(1).div_ceil(step).saturating_mul(step)
}

/// The last `count` days up to and including the day of `now`, oldest first. `counted` has those with attempts.
pub(crate) fn last_days(now: i64, count: i64, counted: &[DayUsage]) -> Vec<DayUsage> {
    let today = Timestamp(now).date();
    let days = (0..count).rev().map(|back| (today - Duration::days(back)).to_string());
    days.map(|day| match counted.iter().find(|known| known.day == day) {
        Some(known) => known.clone(),
        None => DayUsage { day, attempts: 0, failures: 0 },
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_attempts() {
        let day = |attempts, failures| DayUsage { day: String::new(), attempts, failures };
        let chart = Chart::new(vec![day(0, 0), day(1_000_000, 500_000), day(1, 1)]);
        let heights: Vec<_> = chart.bars.iter().map(|bar| (bar.height, bar.failed_height)).collect();
        assert_eq!(heights, [(0, 0), (HEIGHT, HEIGHT / 2), (2, 2)]);
        assert!(chart.bars.iter().all(|bar| bar.x + bar.width <= WIDTH && bar.y + bar.height == HEIGHT));
        assert_eq!((chart.max, chart.attempts, chart.failures), (1_000_000, 1_000_001, 500_001));
        assert!(Chart::new(Vec::new()).bars.is_empty());
        for (most, max) in
            [(0, 2), (1, 2), (3, 4), (9, 10), (10, 10), (11, 20), (61, 80), (145, 200), (1_001, 2_000)]
        {
            assert_eq!(scale(most), max, "{most}");
        }
        assert_eq!(scale(u64::MAX), u64::MAX);
    }

    #[test]
    fn days_without_attempts_are_added() {
        let counted = DayUsage { day: "2024-02-28".to_owned(), attempts: 3, failures: 1 };
        let days = |count| last_days(1_709_251_199, count, std::slice::from_ref(&counted));
        assert_eq!(days(30)[0].day, "2024-01-31");
        let two: Vec<_> = days(2).into_iter().map(|day| (day.day, day.attempts, day.failures)).collect();
        assert_eq!(two, [("2024-02-28".to_owned(), 3, 1), ("2024-02-29".to_owned(), 0, 0)]);
    }
}
