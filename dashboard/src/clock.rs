//! Instants in words: everything is told in UTC.

use time::{Duration, OffsetDateTime};

/// Seconds in a day.
pub const DAY: i64 = 86_400;

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// An instant as pages show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// `2026-11-21 08:51`
    #[must_use]
    pub fn minute(&self) -> String {
        let t = at(self.0);
        format!("{} {:02}:{:02}", date(t), t.hour(), t.minute())
    }

    /// `2026-11-21 08:51:07`
    #[must_use]
    pub fn second(&self) -> String {
        format!("{}:{:02}", self.minute(), at(self.0).second())
    }

    /// `2026-11-21T08:51:07Z`, for machines.
    #[must_use]
    pub fn iso(&self) -> String {
        format!("{}Z", self.second().replace(' ', "T"))
    }

    /// `2026-11-21`
    #[must_use]
    pub fn day(&self) -> String {
        date(at(self.0))
    }

    /// `2026-11`, as quotas name their month.
    #[must_use]
    pub fn month(&self) -> String {
        self.day()[..7].to_owned()
    }

    /// `November 2026`
    #[must_use]
    pub fn month_in_words(&self) -> String {
        let t = at(self.0);
        format!("{} {}", t.month(), t.year())
    }

    /// The first day of the next month, `1 December`.
    #[must_use]
    pub fn next_month(&self) -> String {
        format!("1 {}", at(self.0).month().next())
    }
}

/// The days up to and with the one of `now`, the oldest first, as `YYYY-MM-DD`.
#[must_use]
pub fn last_days(now: i64, count: i64) -> Vec<String> {
    (0..count).rev().map(|back| date(at(now) - Duration::days(back))).collect()
}

fn date(t: OffsetDateTime) -> String {
    format!("{:04}-{:02}-{:02}", t.year(), u8::from(t.month()), t.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_told_in_utc() {
        let moment = Timestamp(1_709_251_199);
        assert_eq!(moment.second(), "2024-02-29 23:59:59");
        assert_eq!(moment.iso(), "2024-02-29T23:59:59Z");
        assert_eq!(moment.month(), "2024-02");
        assert_eq!(moment.month_in_words(), "February 2024");
        assert_eq!(moment.next_month(), "1 March");
        assert_eq!(last_days(moment.0, 30).first().map(String::as_str), Some("2024-01-31"));
        assert_eq!(last_days(moment.0, 2), ["2024-02-28", "2024-02-29"]);
    }
}
