//! The month of the quota, the usage of an account, and the `ratelimit` header fields.
//!
//! Invariant: a month is a calendar month in UTC. The current time is an argument.

use platen_statements::limits::LimitUsage;
use time::{Date, Month, OffsetDateTime};

use crate::api_error::ApiError;

/// The value of "no limit" in the `ratelimit` fields, whose quota is mandatory: the largest integer of
/// structured fields (RFC 9651 3.3.1).
pub const UNLIMITED: u64 = 999_999_999_999_999;

const DAY_SECONDS: u64 = 86_400;

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
            seconds: u64::from(days) * DAY_SECONDS,
            seconds_left: u64::try_from((next - now).whole_seconds()).unwrap_or(1).max(1),
        }
    }

    /// Seconds until the next day (UTC) begins, at least 1.
    #[must_use]
    pub fn seconds_left_of_day(&self) -> u64 {
        DAY_SECONDS - self.now % DAY_SECONDS
    }
}

/// What is left to wait where a place may be free at any time, in seconds.
const MIN_RETRY_AFTER: u64 = 1;

/// The usage of an account in a month, and of its other limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Number of recorded attempts.
    pub attempts: u64,
    /// Number of allowed attempts; `None` is no limit.
    pub quota: Option<u64>,
    /// `None` for an account without other limits.
    pub limits: Option<LimitUsage>,
    /// Seconds after which attempts may have been given back that an edge has claimed ahead; `None` if there are none.
    pub held_seconds: Option<u64>,
    /// Whether a link has no attempt left of its day.
    pub is_day_exhausted: bool,
}

impl Usage {
    /// Whether no attempt remains.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.quota.is_some_and(|quota| self.attempts >= quota)
    }

    /// Why no further attempt may be recorded now, if one of the limits forbids it. The one that lasts longest comes first.
    #[must_use]
    pub fn refusal(&self, month: &QuotaMonth) -> Option<ApiError> {
        if self.is_exhausted() {
            return Some(match self.held_seconds {
                Some(seconds) => ApiError::QuotaHeld { retry_after: seconds.max(MIN_RETRY_AFTER) },
                None => ApiError::QuotaExhausted { retry_after: month.seconds_left },
            });
        }
        if self.is_day_exhausted {
            return Some(ApiError::DailyLimitExceeded { retry_after: month.seconds_left_of_day() });
        }
        let limits = self.limits?;
        if limits.is_minute_exhausted() {
            return Some(ApiError::RateLimitExceeded { retry_after: limits.seconds_left });
        }
        limits
            .is_concurrency_exhausted()
            .then_some(ApiError::ConcurrencyLimitExceeded { retry_after: MIN_RETRY_AFTER })
    }

    /// Takes what a limit leaves: claims were refused although each look-up found a place, because others were first.
    pub fn take_rest(&mut self) {
        let Some(limits) = &mut self.limits else { return };
        match (limits.concurrency, limits.requests_per_minute) {
            (Some(limit), _) => limits.running = limits.running.max(limit),
            (None, Some(limit)) => limits.requests = limits.requests.max(limit),
            (None, None) => {}
        }
    }

    /// The `ratelimit-policy` and `ratelimit` fields of draft-ietf-httpapi-ratelimit-headers-10:
    /// quota and window in seconds; remaining attempts and seconds until the reset. The month is the first item, and
    /// the limits that the account has follow.
    #[must_use]
    pub fn headers(&self, month: &QuotaMonth) -> [(&'static str, String); 2] {
        let quota = self.quota.unwrap_or(UNLIMITED).min(UNLIMITED);
        let remaining =
            self.quota.map_or(UNLIMITED, |quota| quota.saturating_sub(self.attempts)).min(UNLIMITED);
        let mut policies = vec![format!("\"monthly\";q={quota};w={}", month.seconds)];
        let mut states = vec![format!("\"monthly\";r={remaining};t={}", month.seconds_left)];
        if let Some(limits) = self.limits {
            if let Some(limit) = limits.requests_per_minute {
                let left = limit.saturating_sub(limits.requests);
                policies.push(format!("\"minute\";q={limit};w=60"));
                states.push(format!("\"minute\";r={left};t={}", limits.seconds_left));
            }
            if let Some(limit) = limits.concurrency {
                let left = limit.saturating_sub(limits.running);
                policies.push(format!("\"concurrency\";q={limit};qu=\"concurrent-requests\""));
                states.push(format!("\"concurrency\";r={left}"));
            }
        }
        [("ratelimit-policy", policies.join(", ")), ("ratelimit", states.join(", "))]
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
        let fields = |attempts, quota| {
            Usage { attempts, quota, limits: None, held_seconds: None, is_day_exhausted: false }
                .headers(&month)
                .map(|(_, value)| value)
        };
        assert_eq!(fields(3, Some(10)), ["\"monthly\";q=10;w=2505600", "\"monthly\";r=7;t=1"]);
        assert_eq!(fields(30, Some(10)), ["\"monthly\";q=10;w=2505600", "\"monthly\";r=0;t=1"]);
        let unlimited = fields(3, None);
        assert_eq!(unlimited[0], "\"monthly\";q=999999999999999;w=2505600");
        assert_eq!(unlimited[1], "\"monthly\";r=999999999999999;t=1");
    }
    const LIMITS: LimitUsage = LimitUsage {
        requests_per_minute: Some(60),
        requests: 18,
        seconds_left: 42,
        concurrency: Some(5),
        running: 4,
    };

    #[test]
    fn the_fields_have_the_limits_of_the_account() {
        let month = QuotaMonth::at(1_709_251_199);
        let fields = |limits| {
            Usage {
                attempts: 3,
                quota: Some(10),
                limits: Some(limits),
                held_seconds: None,
                is_day_exhausted: false,
            }
            .headers(&month)
        };
        let [(_, policy), (_, state)] = fields(LIMITS);
        let concurrency = ", \"concurrency\";q=5;qu=\"concurrent-requests\"";
        assert_eq!(policy, format!("\"monthly\";q=10;w=2505600, \"minute\";q=60;w=60{concurrency}"));
        assert_eq!(state, "\"monthly\";r=7;t=1, \"minute\";r=42;t=42, \"concurrency\";r=1");
        let [(_, policy), (_, state)] = fields(LimitUsage { requests_per_minute: None, ..LIMITS });
        assert_eq!(policy, format!("\"monthly\";q=10;w=2505600{concurrency}"));
        assert_eq!(state, "\"monthly\";r=7;t=1, \"concurrency\";r=1");
    }

    #[test]
    fn the_limit_of_a_day_ends_with_the_day() {
        let refusal = |attempts| {
            let (quota, limits) = (Some(10), Some(LimitUsage { requests: 60, ..LIMITS }));
            Usage { attempts, quota, limits, held_seconds: None, is_day_exhausted: true }
                .refusal(&QuotaMonth::at(1_709_164_801))
        };
        assert_eq!(refusal(9), Some(ApiError::DailyLimitExceeded { retry_after: 86_399 }));
        assert_eq!(refusal(10), Some(ApiError::QuotaExhausted { retry_after: 86_399 }));
    }

    #[test]
    fn the_limit_that_lasts_longest_refuses() {
        let month = QuotaMonth::at(1_709_251_199);
        let refusal = |attempts, requests, running| {
            let limits = Some(LimitUsage { requests, running, ..LIMITS });
            Usage { attempts, quota: Some(10), limits, held_seconds: None, is_day_exhausted: false }
                .refusal(&month)
        };
        assert_eq!(refusal(9, 59, 4), None);
        let busy = ApiError::ConcurrencyLimitExceeded { retry_after: 1 };
        assert_eq!(refusal(9, 59, 5), Some(busy));
        assert_eq!(refusal(9, 60, 5), Some(ApiError::RateLimitExceeded { retry_after: 42 }));
        assert_eq!(refusal(10, 60, 5), Some(ApiError::QuotaExhausted { retry_after: 1 }));
        let held = Usage {
            attempts: 10,
            quota: Some(10),
            limits: None,
            held_seconds: Some(4),
            is_day_exhausted: false,
        };
        assert_eq!(held.refusal(&month), Some(ApiError::QuotaHeld { retry_after: 4 }));
        assert_eq!(Usage { attempts: 9, ..held }.refusal(&month), None);
        let none = Usage { attempts: 9, quota: None, ..held };
        assert_eq!(none.refusal(&month), None);
        let mut raced = Usage { limits: Some(LIMITS), ..none };
        raced.take_rest();
        assert_eq!(raced.refusal(&month), Some(ApiError::ConcurrencyLimitExceeded { retry_after: 1 }));
        let [_, (_, state)] = raced.headers(&month);
        assert!(state.ends_with(", \"concurrency\";r=0"), "{state}");
    }
}
