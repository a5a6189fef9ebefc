//! Attempts per day as bars.
//!
//! Invariant: geometry only, in whole units of a fixed view box; the page draws it as inline SVG
//! without a style attribute, which the policy would refuse.

/// Width of the drawing.
pub const WIDTH: u32 = 720;
/// Height of the drawing without its labels.
pub const HEIGHT: u32 = 140;

/// One day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// `YYYY-MM-DD`
    pub day: String,
    /// Attempts.
    pub attempts: u64,
    /// Those of them that failed.
    pub failures: u64,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// What it stands for.
    pub day: Day,
    /// Its left side.
    pub x: u32,
    /// Its width.
    pub width: u32,
    /// Its upper end.
    pub y: u32,
    /// Its height.
    pub height: u32,
    /// The upper end of the part that failed, which stands at the bottom.
    pub failed_y: u32,
    /// Its height.
    pub failed_height: u32,
}

/// The drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// The bars, the oldest day first.
    pub bars: Vec<Bar>,
    /// Attempts at the upper end.
    pub top: u64,
    /// The sum of all attempts.
    pub attempts: u64,
    /// The sum of all failures.
    pub failures: u64,
}

impl Chart {
    /// Draws these days.
    #[must_use]
    pub fn new(days: Vec<Day>) -> Self {
        let attempts = days.iter().map(|day| day.attempts).sum();
        let failures = days.iter().map(|day| day.failures).sum();
        let top = days.iter().map(|day| day.attempts.max(day.failures)).max().unwrap_or(0).max(1);
        let slot = WIDTH / u32::try_from(days.len().max(1)).unwrap_or(WIDTH);
        let scaled = |count: u64| {
            let height = count.saturating_mul(u64::from(HEIGHT)) / top;
            // One attempt among a million is still to be seen.
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
        Self { bars, top, attempts, failures }
    }

    /// The first day shown.
    #[must_use]
    pub fn first_day(&self) -> &str {
        self.bars.first().map_or("", |bar| &bar.day.day)
    }

    /// The last day shown.
    #[must_use]
    pub fn last_day(&self) -> &str {
        self.bars.last().map_or("", |bar| &bar.day.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_share() {
        let day = |attempts, failures| Day { day: String::new(), attempts, failures };
        let chart = Chart::new(vec![day(0, 0), day(1_000_000, 500_000), day(1, 1)]);
        let heights: Vec<_> = chart.bars.iter().map(|bar| (bar.height, bar.failed_height)).collect();
        assert_eq!(heights, [(0, 0), (HEIGHT, HEIGHT / 2), (2, 2)]);
        assert!(chart.bars.iter().all(|bar| bar.x + bar.width <= WIDTH && bar.y + bar.height == HEIGHT));
        assert_eq!((chart.top, chart.attempts, chart.failures), (1_000_000, 1_000_001, 500_001));
        assert!(Chart::new(Vec::new()).bars.is_empty());
    }
}
