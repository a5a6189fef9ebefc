//! A bar chart of attempts per day.
//!
//! Invariant: positions are whole units of a fixed view box. The page draws them as inline SVG without
//! `style` attributes, which its content security policy forbids.

/// Width of the view box.
pub const WIDTH: u32 = 720;
/// Height of the view box, without labels.
pub const HEIGHT: u32 = 140;

/// The attempts of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// `YYYY-MM-DD`
    pub day: String,
    /// Counted attempts.
    pub attempts: u64,
    /// Counted attempts that failed.
    pub failures: u64,
}

/// A bar: all attempts of a day, with the failed ones in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The day it shows.
    pub day: Day,
    /// Left edge.
    pub x: u32,
    /// Width of both parts.
    pub width: u32,
    /// Upper edge of all attempts.
    pub y: u32,
    /// Height of all attempts.
    pub height: u32,
    /// Upper edge of the failed attempts, which start at the bottom.
    pub failed_y: u32,
    /// Height of the failed attempts.
    pub failed_height: u32,
}

/// A bar for each day, and the sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// The bars, oldest day first.
    pub bars: Vec<Bar>,
    /// The number of attempts that fills the full height.
    pub max: u64,
    /// The sum of the attempts.
    pub attempts: u64,
    /// The sum of the failures.
    pub failures: u64,
}

impl Chart {
    /// Lays out these days, oldest first.
    #[must_use]
    pub fn new(days: Vec<Day>) -> Self {
        let attempts = days.iter().map(|day| day.attempts).sum();
        let failures = days.iter().map(|day| day.failures).sum();
        let max = days.iter().map(|day| day.attempts.max(day.failures)).max().unwrap_or(0).max(1);
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
        Self { bars, max, attempts, failures }
    }

    /// The oldest day; empty without days.
    #[must_use]
    pub fn first_day(&self) -> &str {
        self.bars.first().map_or("", |bar| &bar.day.day)
    }

    /// The latest day; empty without days.
    #[must_use]
    pub fn last_day(&self) -> &str {
        self.bars.last().map_or("", |bar| &bar.day.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_attempts() {
        let day = |attempts, failures| Day { day: String::new(), attempts, failures };
        let chart = Chart::new(vec![day(0, 0), day(1_000_000, 500_000), day(1, 1)]);
        let heights: Vec<_> = chart.bars.iter().map(|bar| (bar.height, bar.failed_height)).collect();
        assert_eq!(heights, [(0, 0), (HEIGHT, HEIGHT / 2), (2, 2)]);
        assert!(chart.bars.iter().all(|bar| bar.x + bar.width <= WIDTH && bar.y + bar.height == HEIGHT));
        assert_eq!((chart.max, chart.attempts, chart.failures), (1_000_000, 1_000_001, 500_001));
        assert!(Chart::new(Vec::new()).bars.is_empty());
    }
}
