//! The usage page: this month's quota, a chart of 30 days, and the list of attempts.

use askama::Template;

use super::Layout;
use crate::{chart::Chart, clock::Timestamp, csv};

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
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// Position in the log, for paging.
    pub(crate) id: i64,
    pub(crate) at: Timestamp,
    /// Name of the key at that time.
    pub(crate) key_name: Option<String>,
    /// `render` or `template`.
    pub(crate) endpoint: String,
    pub(crate) format: String,
    /// HTTP status of the response; 499 if the client disconnected.
    pub(crate) status: u16,
    pub(crate) counted: bool,
    pub(crate) duration_ms: u64,
    pub(crate) size_bytes: Option<u64>,
}

impl Attempt {
    fn failed(&self) -> bool {
        self.status >= 400 && !self.cancelled()
    }

    fn cancelled(&self) -> bool {
        self.status == 499
    }

    fn path(&self) -> &'static str {
        if self.endpoint == "template" { "/v1/render/template" } else { "/v1/render" }
    }

    fn size(&self) -> String {
        self.size_bytes.map_or_else(|| "–".to_owned(), format_size)
    }

    /// The status in a word or two.
    fn result(&self) -> &'static str {
        match self.status {
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

    pub(crate) fn csv(&self) -> String {
        csv::line(&[
            &self.at.rfc3339(),
            self.key_name.as_deref().unwrap_or(""),
            self.path(),
            &self.format,
            &self.status.to_string(),
            if self.counted { "yes" } else { "no" },
            &self.duration_ms.to_string(),
            &self.size_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            self.result(),
        ])
    }
}

pub(crate) fn csv_header() -> String {
    csv::line(&[
        "time",
        "key",
        "endpoint",
        "format",
        "status",
        "counted",
        "duration_ms",
        "size_bytes",
        "result",
    ])
}

/// A number of bytes with its decimal unit.
pub(crate) fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} KB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A position in the list of attempts: the next page starts after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Time of the attempt, in seconds since 1970.
    pub(crate) at: i64,
    /// Id of the attempt, which orders attempts of the same second.
    pub(crate) id: i64,
}

impl Cursor {
    /// Parses the `before` parameter, `AT.ID`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        Some(Self { at: at.parse().ok()?, id: id.parse().ok()? })
    }
}

#[derive(Debug, Template)]
#[template(path = "usage.html")]
pub(crate) struct UsagePage {
    pub(crate) layout: Layout,
    pub(crate) month: MonthlyUsage,
    pub(crate) chart: Chart,
    /// One page of attempts, newest first.
    pub(crate) attempts: Vec<Attempt>,
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
        let attempt = Attempt {
            id: 1,
            at: Timestamp(0),
            key_name: Some("a".to_owned()),
            endpoint: "render".to_owned(),
            format: "png".to_owned(),
            status: 499,
            counted: false,
            duration_ms: 12,
            size_bytes: None,
        };
        assert_eq!(attempt.csv(), "1970-01-01T00:00:00Z,a,/v1/render,png,499,no,12,,Cancelled\r\n");
        assert!(csv_header().ends_with("size_bytes,result\r\n"));
        assert!(attempt.cancelled() && !attempt.failed());
    }

    #[test]
    fn sizes_and_percentages_are_rounded_down() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1_250, "1.2 KB"), (74_000, "74.0 KB"), (5_242_880, "5.2 MB")]
        {
            assert_eq!(format_size(bytes), text);
        }
        let percent = |attempts, quota| MonthlyUsage { now: Timestamp(0), quota, attempts }.percent();
        assert_eq!(
            [percent(5, Some(10)), percent(11, Some(10)), percent(0, Some(0)), percent(5, None)],
            [50, 100, 100, 0]
        );
        assert_eq!(Cursor::parse("5.6"), Some(Cursor { at: 5, id: 6 }));
        assert_eq!(Cursor::parse("5.6.7"), None);
    }
}
