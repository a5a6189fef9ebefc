//! Times of the database.

use std::fmt;

use serde::{Serialize, Serializer};
use time::{Date, OffsetDateTime};

/// Whole seconds since 1970 (UTC); displayed and serialised as ISO 8601.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    fn utc(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(self.0).unwrap_or(OffsetDateTime::UNIX_EPOCH)
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
    }
}
