//! Times of the database.

use std::fmt;

use serde::{Serialize, Serializer};
use time::{Date, Month, OffsetDateTime, Time};

/// Whole seconds since 1970 (UTC); displayed and serialised as ISO 8601.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Times after the year 9999 are its last second.
    fn utc(self) -> OffsetDateTime {
        let last = OffsetDateTime::new_utc(Date::MAX, Time::MAX);
        OffsetDateTime::from_unix_timestamp(self.0.clamp(0, last.unix_timestamp())).unwrap_or(last)
    }

    /// The first second of a day (UTC), `YYYY-MM-DD`.
    #[must_use]
    pub fn of_day(text: &str) -> Option<Self> {
        let mut parts = text.split('-').map(str::parse::<u16>);
        let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let date = Date::from_calendar_date(year.into(), month, u8::try_from(day).ok()?).ok()?;
        Some(Self(OffsetDateTime::new_utc(date, Time::MIDNIGHT).unix_timestamp()))
    }

    /// The day, which is displayed as `2026-11-21`.
    #[must_use]
    pub fn date(self) -> Date {
        self.utc().date()
    }

    /// `2026-11-21 08:51`
    #[must_use]
    pub fn date_and_minute(self) -> String {
        let utc = self.utc();
        format!("{} {:02}:{:02}", utc.date(), utc.hour(), utc.minute())
    }

    /// `2026-11-21 08:51:07`
    #[must_use]
    pub fn date_and_second(self) -> String {
        format!("{}:{:02}", self.date_and_minute(), self.utc().second())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.date_and_second().replace(' ', "T"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_displayed_in_utc() {
        let time = Timestamp(1_709_251_199);
        assert_eq!(time.date().to_string(), "2024-02-29");
        assert_eq!(time.date_and_second(), "2024-02-29 23:59:59");
        assert_eq!(time.to_string(), "2024-02-29T23:59:59Z");
        assert_eq!(serde_json::json!(Timestamp(0)), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp(253_402_300_800).to_string(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn days_begin_at_midnight() {
        assert_eq!(Timestamp::of_day("2024-02-29"), Some(Timestamp(1_709_164_800)));
        assert_eq!(Timestamp::of_day("9999-12-31"), Some(Timestamp(253_402_214_400)));
        for bad in
            ["", "2024-02-30", "2024-13-01", "29.02.2024", "2024-2", "2024-03-01-1", "99999-01-01", "x-y-z"]
        {
            assert_eq!(Timestamp::of_day(bad), None, "{bad}");
        }
    }
}
