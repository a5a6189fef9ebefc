//! The month of the quota, and the `ratelimit` header fields.
//!
//! Invariant: a month is a calendar month in UTC. The current time is an argument.

use time::{Date, Month, OffsetDateTime};

/// The value of "no limit" in the `ratelimit` fields, whose quota is mandatory: the largest integer of
/// structured fields (RFC 9651 3.3.1).
pub const UNLIMITED: u64 = 999_999_999_999_999;

/// A calendar month in UTC, and the current time within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaMonth {
    /// The current time in whole seconds since 1970 (UTC).
    pub now: u64,
    /// The month as `YYYY-MM`.
    pub name: String,
    /// Length of the month in seconds.
    pub seconds: u64,
    /// Seconds until the next month begins, at least 1.
    pub seconds_left: u64,
}

impl QuotaMonth {
    /// The month of an instant in whole seconds since 1970 (UTC).
    #[must_use]
    pub fn at(unix_seconds: u64) -> Self {
        let now = i64::try_from(unix_seconds)
            .ok()
            .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month) = (now.year(), now.month());
        let days = month.length(year);
        let next_year = if month == Month::December { year + 1 } else { year };
        let next = Date::from_calendar_date(next_year, month.next(), 1)
            .map_or(now, |date| date.midnight().assume_utc());
        Self {
            now: unix_seconds,
            name: format!("{year:04}-{:02}", u8::from(month)),
            seconds: u64::from(days) * 86_400,
            seconds_left: u64::try_from((next - now).whole_seconds()).unwrap_or(1).max(1),
        }
    }
}

/// The usage of an account in a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Number of recorded attempts.
    pub attempts: u64,
    /// Number of allowed attempts; `None` is no limit.
    pub quota: Option<u64>,
}

impl Usage {
    /// Whether no attempt remains.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.quota.is_some_and(|quota| self.attempts >= quota)
    }

    /// The `ratelimit-policy` and `ratelimit` fields of draft-ietf-httpapi-ratelimit-headers-10:
    /// quota and window in seconds; remaining attempts and seconds until the reset.
    #[must_use]
    pub fn headers(&self, month: &QuotaMonth) -> [(&'static str, String); 2] {
        let quota = self.quota.unwrap_or(UNLIMITED).min(UNLIMITED);
        let remaining =
            self.quota.map_or(UNLIMITED, |quota| quota.saturating_sub(self.attempts)).min(UNLIMITED);
        [
            ("ratelimit-policy", format!("\"monthly\";q={quota};w={}", month.seconds)),
            ("ratelimit", format!("\"monthly\";r={remaining};t={}", month.seconds_left)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_calendar_months_in_utc() {
        let table = [
            (0, "1970-01", 31, 31 * 86_400),
            (1_709_251_199, "2024-02", 29, 1),
            (1_709_251_200, "2024-03", 31, 31 * 86_400),
            (1_798_761_599, "2026-12", 31, 1),
            (1_798_761_600, "2027-01", 31, 31 * 86_400),
        ];
        for (instant, name, days, left) in table {
            let month = QuotaMonth::at(instant);
            assert_eq!((month.name.as_str(), month.seconds, month.seconds_left), (name, days * 86_400, left));
        }
    }

    #[test]
    fn the_fields_have_the_quota_and_the_remaining_attempts() {
        let month = QuotaMonth::at(1_709_251_199);
        let fields = |attempts, quota| Usage { attempts, quota }.headers(&month).map(|(_, value)| value);
        assert_eq!(fields(3, Some(10)), ["\"monthly\";q=10;w=2505600", "\"monthly\";r=7;t=1"]);
        assert_eq!(fields(30, Some(10)), ["\"monthly\";q=10;w=2505600", "\"monthly\";r=0;t=1"]);
        let unlimited = fields(3, None);
        assert_eq!(unlimited[0], "\"monthly\";q=999999999999999;w=2505600");
        assert_eq!(unlimited[1], "\"monthly\";r=999999999999999;t=1");
    }
}
