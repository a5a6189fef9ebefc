//! Times of the database.

use std::fmt;

use serde::{Serialize, Serializer};
use time::OffsetDateTime;

/// Whole seconds since 1970 (UTC); displayed and serialised as ISO 8601.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = OffsetDateTime::from_unix_timestamp(self.0).map_err(|_| fmt::Error)?;
        let (month, (hour, minute, second)) = (u8::from(time.month()), time.to_hms());
        write!(f, "{:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", time.year(), time.day())
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
    fn times_are_displayed_as_iso_8601() {
        assert_eq!(Timestamp(1_709_251_199).to_string(), "2024-02-29T23:59:59Z");
        assert_eq!(serde_json::json!(Timestamp(0)), "1970-01-01T00:00:00Z");
    }
}
