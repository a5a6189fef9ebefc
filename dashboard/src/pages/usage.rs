//! The overview and the usage page: this month's quota, a chart of 30 days, attempts by key and by template.

use askama::Template;
use platen_statements::{
    Membership, Timestamp,
    limits::Limits,
    requests::RequestEntry,
    usage::{FirstSteps, PartUsage},
};
use time::{Date, Month};

use super::Layout;
use crate::{
    chart::Chart,
    format::{self, DAY_SECONDS},
};

/// Use of the quota in one month.
#[derive(Debug, Clone)]
pub(crate) struct MonthlyUsage {
    /// The time of the request, in that month.
    pub(crate) now: Timestamp,
    /// Attempts per month; `None` is unlimited.
    pub(crate) quota: Option<u64>,
    pub(crate) attempts: u64,
}

impl MonthlyUsage {
    pub(crate) fn of(account: &Membership, now: i64) -> Self {
        Self { now: Timestamp(now), quota: account.quota, attempts: account.attempts }
    }

    /// Used part of the quota in whole percent, at most 100; 0 if there is no quota.
    pub(crate) fn percent(&self) -> u64 {
        match self.quota {
            Some(0) => 100,
            Some(quota) => (self.attempts.saturating_mul(100) / quota).min(100),
            None => 0,
        }
    }

    /// The part of the quota from which pages warn.
    const WARNING_PERCENT: u64 = 80;

    /// The class of the bar, and of the warning.
    pub(super) fn level(&self) -> &'static str {
        match self.percent() {
            100.. => "full",
            Self::WARNING_PERCENT.. => "high",
            _ => "",
        }
    }

    /// What happens until [`Self::next_start`], where the quota is used or nearly used.
    pub(super) fn warning(&self) -> Option<String> {
        let quota = format::number(&self.quota?);
        match self.percent() {
            100.. => Some(format!("All {quota} attempts of this month are used. Requests are refused")),
            percent @ Self::WARNING_PERCENT.. => Some(format!(
                "{percent} % of this month’s {quota} attempts are used. After them, requests are refused"
            )),
            _ => None,
        }
    }

    /// The mean of the days of this month until now, and when the quota ends or what the month comes to if the days that
    /// are left have as many. `None` on the first day, without attempts, and when all are used.
    pub(super) fn forecast(&self) -> Option<String> {
        let date = self.now.date();
        let gone = i64::from(date.day() - 1) * DAY_SECONDS + self.now.0.rem_euclid(DAY_SECONDS);
        if gone < DAY_SECONDS || self.attempts == 0 || self.percent() == 100 {
            return None;
        }
        let days = i64::from(date.month().length(date.year()));
        let scaled = |seconds: i64| i128::from(self.attempts) * i128::from(seconds) / i128::from(gone);
        let number = |number: i128| format::number(&u64::try_from(number).unwrap_or(u64::MAX));
        let month = scaled(days * DAY_SECONDS);
        let then = match self.quota {
            Some(quota) if month > i128::from(quota) => {
                let end = i128::from(gone) * i128::from(quota) / i128::from(self.attempts);
                let end = self.now.0 - gone + i64::try_from(end).unwrap_or(i64::MAX);
                format!("the quota ends on {}", Timestamp(end).date())
            }
            _ => format!("the month comes to {}", number(month)),
        };
        let tenths = gone * 10 / DAY_SECONDS;
        let (days, tenth) = (tenths / 10, tenths % 10);
        Some(format!("{} a day over {days}.{tenth} days. At this pace {then}.", number(scaled(DAY_SECONDS))))
    }

    /// `November 2026`
    fn name(&self) -> String {
        let date = self.now.date();
        format!("{} {}", date.month(), date.year())
    }

    /// `October 2026`
    fn last_name(&self) -> String {
        let last = self.now.date().month().previous();
        format!("{last} {}", self.now.date().year() - i32::from(last == Month::December))
    }

    /// The first day of the next month.
    pub(super) fn next_start(&self) -> Date {
        let date = self.now.date();
        let days = i64::from(date.month().length(date.year()) - date.day() + 1);
        Timestamp(self.now.0 + days * DAY_SECONDS).date()
    }
}

/// The first page after sign-in.
#[derive(Debug, Template)]
#[template(path = "home.html")]
pub(crate) struct HomePage {
    pub(crate) layout: Layout,
    pub(crate) month: MonthlyUsage,
    /// The first steps of the account, until they are done.
    pub(crate) steps: Option<FirstSteps>,
    pub(crate) chart: Chart,
    /// The last requests that failed, newest first.
    pub(crate) failed: Vec<RequestEntry>,
}

#[derive(Debug, Template)]
#[template(path = "usage.html")]
pub(crate) struct UsagePage {
    pub(crate) layout: Layout,
    pub(crate) month: MonthlyUsage,
    /// Attempts of the month before.
    pub(crate) last: u64,
    pub(crate) limits: Option<Limits>,
    pub(crate) chart: Chart,
    /// The attempts of 30 days by key, the most first.
    pub(crate) by_key: Vec<PartUsage>,
    /// The attempts of 30 days by template, the most first.
    pub(crate) by_template: Vec<PartUsage>,
}

impl UsagePage {
    /// The limits beside the quota, if there are any.
    fn limits_text(&self) -> Option<String> {
        let Limits { requests_per_minute, concurrency, running } = self.limits.as_ref()?;
        let per_minute = requests_per_minute.map(|limit| format!("{} per minute", format::number(&limit)));
        let at_once = concurrency.map(|limit| {
            format!(
                "{} at once, of which {} are in progress",
                format::number(&limit),
                format::number(running)
            )
        });
        let parts: Vec<_> = per_minute.into_iter().chain(at_once).collect();
        (!parts.is_empty()).then(|| format!("Limits of requests: {}.", parts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn month(now: i64, quota: Option<u64>, attempts: u64) -> MonthlyUsage {
        MonthlyUsage { now: Timestamp(now), quota, attempts }
    }

    #[test]
    fn percentages_are_rounded_down() {
        let percent = |attempts, quota| month(0, quota, attempts).percent();
        assert_eq!(
            [percent(5, Some(10)), percent(11, Some(10)), percent(0, Some(0)), percent(5, None)],
            [50, 100, 100, 0]
        );
        let of = |attempts| month(0, Some(1_000), attempts);
        assert_eq!([799, 800, 1_000].map(|attempts| of(attempts).level()), ["", "high", "full"]);
        assert_eq!(of(799).warning(), None);
        assert!(of(999).warning().unwrap().starts_with("99 % of this month’s 1,000 attempts are used."));
        assert!(of(1_001).warning().unwrap().starts_with("All 1,000 attempts of this month are used."));
        let february = month(1_709_251_199, None, 0);
        assert_eq!(
            (february.name(), february.next_start().to_string()),
            ("February 2024".to_owned(), "2024-03-01".to_owned())
        );
        assert_eq!(february.last_name(), "January 2024");
        assert_eq!(month(0, None, 0).last_name(), "December 1969");
    }

    #[test]
    fn a_forecast_is_the_mean_of_the_days() {
        // The 11th day of January at noon.
        let now = 10 * DAY_SECONDS + DAY_SECONDS / 2;
        let forecast = |quota, attempts| month(now, quota, attempts).forecast();
        for (quota, attempts, text) in [
            (None, 1_050, "100 a day over 10.5 days. At this pace the month comes to 3,100."),
            (Some(3_100), 1_050, "100 a day over 10.5 days. At this pace the month comes to 3,100."),
            (Some(2_000), 1_050, "100 a day over 10.5 days. At this pace the quota ends on 1970-01-21."),
            (Some(10), 3, "0 a day over 10.5 days. At this pace the month comes to 8."),
        ] {
            assert_eq!(forecast(quota, attempts).as_deref(), Some(text));
        }
        assert_eq!([forecast(None, 0), forecast(Some(5), 5)], [None, None]);
        assert_eq!(month(DAY_SECONDS - 1, None, 5).forecast(), None);
        assert!(
            month(i64::MAX, Some(u64::MAX), u64::MAX - 1).forecast().is_none_or(|text| text.contains("pace"))
        );
    }
}
