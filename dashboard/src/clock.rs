//! Instants as pages show them, in UTC.

use time::{Duration, OffsetDateTime};

/// Seconds in a day.
pub(crate) const DAY: i64 = 86_400;

/// Seconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(pub(crate) i64);

impl Timestamp {
    fn utc(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(self.0).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// `2026-11-21`
    pub(crate) fn date(self) -> String {
        self.utc().date().to_string()
    }

    /// `2026-11-21 08:51`
    pub(crate) fn date_and_minute(self) -> String {
        let utc = self.utc();
        format!("{} {:02}:{:02}", utc.date(), utc.hour(), utc.minute())
    }

    /// `2026-11-21 08:51:07`
    pub(crate) fn date_and_second(self) -> String {
        format!("{}:{:02}", self.date_and_minute(), self.utc().second())
    }

    /// `2026-11-21T08:51:07Z`
    pub(crate) fn rfc3339(self) -> String {
        format!("{}Z", self.date_and_second().replace(' ', "T"))
    }

    /// `November 2026`
    pub(crate) fn month_name(self) -> String {
        let utc = self.utc();
        format!("{} {}", utc.month(), utc.year())
    }

    /// The first day of the next month, `1 December`.
    pub(crate) fn next_month_start(self) -> String {
        format!("1 {}", self.utc().month().next())
    }
}

/// The last `count` days up to and including the day of `now`, oldest first, as `YYYY-MM-DD`.
pub(crate) fn last_days(now: i64, count: i64) -> Vec<String> {
    let today = Timestamp(now).utc().date();
    (0..count).rev().map(|back| (today - Duration::days(back)).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_shown_in_utc() {
        let instant = Timestamp(1_709_251_199);
        assert_eq!(instant.date_and_second(), "2024-02-29 23:59:59");
        assert_eq!(instant.rfc3339(), "2024-02-29T23:59:59Z");
        assert_eq!(instant.month_name(), "February 2024");
        assert_eq!(instant.next_month_start(), "1 March");
        assert_eq!(last_days(instant.0, 30).first().map(String::as_str), Some("2024-01-31"));
        assert_eq!(last_days(instant.0, 2), ["2024-02-28", "2024-02-29"]);
    }
}
