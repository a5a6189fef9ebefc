//! The usage page: this month's quota, a chart of 30 days, and attempts by key and by template.

use askama::Template;
use platen_statements::{Timestamp, limits::Limits, usage::PartUsage};
use time::Month;

use super::Layout;
use crate::{chart::Chart, format};

/// Use of the quota in one month.
#[derive(Debug, Clone)]
pub(crate) struct MonthlyUsage {
    /// The time of the request, in that month.
    pub(crate) now: Timestamp,
    /// Attempts per month; `None` is unlimited.
    pub(crate) quota: Option<u64>,
    pub(crate) attempts: u64,
    /// Attempts of the month before.
    pub(crate) last: u64,
}

impl MonthlyUsage {
    /// Used part of the quota in whole percent, at most 100; 0 if there is no quota.
    pub(crate) fn percent(&self) -> u64 {
        match self.quota {
            Some(0) => 100,
            Some(quota) => (self.attempts.saturating_mul(100) / quota).min(100),
            None => 0,
        }
    }

    /// The part of the quota from which the page warns.
    const WARNING_PERCENT: u64 = 80;

    /// The class of the bar.
    fn level(&self) -> &'static str {
        match self.percent() {
            100.. => "full",
            Self::WARNING_PERCENT.. => "high",
            _ => "",
        }
    }

    /// What happens next, where the quota is used or nearly used.
    fn warning(&self) -> Option<String> {
        let quota = format::number(&self.quota?);
        let next = self.next_start();
        match self.percent() {
            100.. => Some(format!(
                "All {quota} attempts of this month are used. Requests are refused with status 429 until {next} (UTC). \
                 Ask your operator for a higher quota."
            )),
            percent @ Self::WARNING_PERCENT.. => Some(format!(
                "{percent} % of this month’s attempts are used. After {quota} attempts, requests are refused with status 429 \
                 until {next} (UTC). Ask your operator for a higher quota."
            )),
            _ => None,
        }
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

    /// The first day of the next month, `1 December`.
    fn next_start(&self) -> String {
        format!("1 {}", self.now.date().month().next())
    }
}

#[derive(Debug, Template)]
#[template(path = "usage.html")]
pub(crate) struct UsagePage {
    pub(crate) layout: Layout,
    pub(crate) month: MonthlyUsage,
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

    #[test]
    fn percentages_are_rounded_down() {
        let percent =
            |attempts, quota| MonthlyUsage { now: Timestamp(0), quota, attempts, last: 0 }.percent();
        assert_eq!(
            [percent(5, Some(10)), percent(11, Some(10)), percent(0, Some(0)), percent(5, None)],
            [50, 100, 100, 0]
        );
        let month = |attempts| MonthlyUsage { now: Timestamp(0), quota: Some(1_000), attempts, last: 0 };
        assert_eq!([799, 800, 1_000].map(|attempts| month(attempts).level()), ["", "high", "full"]);
        assert_eq!(month(799).warning(), None);
        assert!(
            month(999).warning().unwrap().starts_with("99 % of this month’s attempts are used. After 1,000")
        );
        assert!(month(1_001).warning().unwrap().contains("until 1 February (UTC)"));
        let february = MonthlyUsage { now: Timestamp(1_709_251_199), quota: None, attempts: 0, last: 0 };
        assert_eq!([february.name(), february.next_start()], ["February 2024", "1 March"]);
        assert_eq!(february.last_name(), "January 2024");
        assert_eq!(MonthlyUsage { now: Timestamp(0), ..february }.last_name(), "December 1969");
    }
}
