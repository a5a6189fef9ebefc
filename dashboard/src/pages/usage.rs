//! The usage page: this month's quota, a chart of 30 days, and the list of attempts.

use askama::Template;
use platen_statements::{
    Timestamp,
    usage::{AttemptEntry, PartUsage},
};

use super::Layout;
use crate::{chart::Chart, csv, format};

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
    /// Used part of the quota in whole percent, at most 100; 0 if there is no quota.
    pub(crate) fn percent(&self) -> u64 {
        match self.quota {
            Some(0) => 100,
            Some(quota) => (self.attempts.saturating_mul(100) / quota).min(100),
            None => 0,
        }
    }

    /// From which part of the quota the page warns.
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

    /// The first day of the next month, `1 December`.
    fn next_start(&self) -> String {
        format!("1 {}", self.now.date().month().next())
    }
}

fn failed(attempt: &AttemptEntry) -> bool {
    attempt.status >= 400 && !cancelled(attempt)
}

/// The client disconnected.
fn cancelled(attempt: &AttemptEntry) -> bool {
    attempt.status == 499
}

fn path(attempt: &AttemptEntry) -> &'static str {
    if attempt.endpoint == "template" { "/v1/render/template" } else { "/v1/render" }
}

fn size(attempt: &AttemptEntry) -> String {
    attempt.bytes.map_or_else(|| "–".to_owned(), format::size)
}

/// The status in a word or two.
fn result(attempt: &AttemptEntry) -> &'static str {
    match attempt.status {
        200 => "OK",
        400 => "Invalid",
        422 => "Page failed",
        499 => "Cancelled",
        502 => "Renderer failed",
        503 => "Busy",
        504 => "Timed out",
        _ => "Error",
    }
}

pub(crate) fn csv_line(attempt: &AttemptEntry) -> String {
    csv::line(&[
        &attempt.at.to_string(),
        attempt.key_name.as_deref().unwrap_or(""),
        path(attempt),
        &attempt.format,
        &attempt.status.to_string(),
        if attempt.counted { "yes" } else { "no" },
        &attempt.ms.to_string(),
        &attempt.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
        result(attempt),
    ])
}

/// The first line of the CSV export.
pub(crate) const CSV_HEADER: &str =
    "time,key,endpoint,format,status,counted,duration_ms,size_bytes,result\r\n";

/// Time and id of an attempt, after which the next page of the list starts. The id orders attempts of the same
/// second.
pub(crate) type Cursor = (i64, i64);

/// Parses the `before` parameter, `AT.ID`.
pub(crate) fn parse_cursor(text: &str) -> Option<Cursor> {
    let (at, id) = text.split_once('.')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

#[derive(Debug, Template)]
#[template(path = "usage.html")]
pub(crate) struct UsagePage {
    pub(crate) layout: Layout,
    pub(crate) month: MonthlyUsage,
    pub(crate) chart: Chart,
    /// The attempts of 30 days by key, the most first.
    pub(crate) by_key: Vec<PartUsage>,
    /// The attempts of 30 days by template, the most first.
    pub(crate) by_template: Vec<PartUsage>,
    /// One page of attempts, newest first.
    pub(crate) attempts: Vec<AttemptEntry>,
    /// Days for which single attempts are kept.
    pub(crate) kept_days: i64,
    pub(crate) failures_only: bool,
    pub(crate) has_newer: bool,
    /// Where the next page starts, if there is one.
    pub(crate) next: Option<Cursor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_disconnected_is_shown_as_cancelled() {
        let attempt = AttemptEntry {
            id: 1,
            at: Timestamp(0),
            key_name: Some("a".to_owned()),
            endpoint: "render".to_owned(),
            format: "png".to_owned(),
            status: 499,
            counted: false,
            ms: 12,
            bytes: None,
        };
        assert_eq!(csv_line(&attempt), "1970-01-01T00:00:00Z,a,/v1/render,png,499,no,12,,Cancelled\r\n");
        assert!(CSV_HEADER.ends_with("size_bytes,result\r\n"));
        assert!(cancelled(&attempt) && !failed(&attempt));
    }

    #[test]
    fn percentages_are_rounded_down() {
        let percent = |attempts, quota| MonthlyUsage { now: Timestamp(0), quota, attempts }.percent();
        assert_eq!(
            [percent(5, Some(10)), percent(11, Some(10)), percent(0, Some(0)), percent(5, None)],
            [50, 100, 100, 0]
        );
        let month = |attempts| MonthlyUsage { now: Timestamp(0), quota: Some(1_000), attempts };
        assert_eq!([799, 800, 1_000].map(|attempts| month(attempts).level()), ["", "high", "full"]);
        assert_eq!(month(799).warning(), None);
        assert!(
            month(999).warning().unwrap().starts_with("99 % of this month’s attempts are used. After 1,000")
        );
        assert!(month(1_001).warning().unwrap().contains("until 1 February (UTC)"));
        let february = MonthlyUsage { now: Timestamp(1_709_251_199), quota: None, attempts: 0 };
        assert_eq!([february.name(), february.next_start()], ["February 2024", "1 March"]);
        assert_eq!(parse_cursor("5.6"), Some((5, 6)));
        assert_eq!(parse_cursor("5.6.7"), None);
    }
}
