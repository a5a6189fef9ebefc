//! Usage.

use askama::Template;

use super::Layout;
use crate::{chart::Chart, clock::Timestamp, csv};

/// Where an account stands in a month.
#[derive(Debug, Clone)]
pub struct Month {
    /// An instant in the month.
    pub now: Timestamp,
    /// Attempts allowed; `None` is no limit.
    pub quota: Option<u64>,
    /// Attempts made.
    pub attempts: u64,
}

impl Month {
    /// How much of the quota is used, in whole percent up to 100.
    #[must_use]
    pub fn percent(&self) -> u64 {
        match self.quota {
            Some(0) => 100,
            Some(quota) => (self.attempts.saturating_mul(100) / quota).min(100),
            None => 0,
        }
    }
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its place in the log.
    pub id: i64,
    /// When it began.
    pub at: Timestamp,
    /// The key's name then.
    pub key_name: Option<String>,
    /// `render` or `template`.
    pub endpoint: String,
    /// The format asked for.
    pub format: String,
    /// The HTTP status.
    pub status: u16,
    /// It counts against the quota.
    pub counted: bool,
    /// Milliseconds until the answer began.
    pub ms: u64,
    /// Bytes of the file.
    pub bytes: Option<u64>,
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
        self.bytes.map_or_else(|| "–".to_owned(), size)
    }

    /// What the status means, in a word or two.
    fn meaning(&self) -> &'static str {
        match self.status {
            200 => "OK",
            400 => "Invalid",
            422 => "Page failed",
            // The caller disconnected.
            499 => "Cancelled",
            502 => "Renderer failed",
            503 => "Busy",
            504 => "Too slow",
            _ => "Error",
        }
    }

    /// One line of the export.
    #[must_use]
    pub fn csv(&self) -> String {
        csv::line(&[
            &self.at.iso(),
            self.key_name.as_deref().unwrap_or(""),
            self.path(),
            &self.format,
            &self.status.to_string(),
            if self.counted { "yes" } else { "no" },
            &self.ms.to_string(),
            &self.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            self.meaning(),
        ])
    }
}

/// The first line of the export.
#[must_use]
pub fn csv_head() -> String {
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

/// A number of bytes for people.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} KB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A place in the list of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// When.
    pub at: i64,
    /// And which of them.
    pub id: i64,
}

impl Cursor {
    /// Reads it from an address, `AT.ID`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        Some(Self { at: at.parse().ok()?, id: id.parse().ok()? })
    }
}

/// The page.
#[derive(Debug, Template)]
#[template(path = "usage.html")]
pub struct Usage {
    /// What surrounds it.
    pub layout: Layout,
    /// This month.
    pub month: Month,
    /// The last days.
    pub chart: Chart,
    /// Attempts, the newest first.
    pub attempts: Vec<Attempt>,
    /// Only those that failed are listed.
    pub failures: bool,
    /// This is not the first page.
    pub later: bool,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_disconnected_is_shown_as_cancelled() {
        let attempt = Attempt {
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
        assert_eq!(attempt.csv(), "1970-01-01T00:00:00Z,a,/v1/render,png,499,no,12,,Cancelled\r\n");
        assert!(csv_head().ends_with("size_bytes,result\r\n"));
        assert!(attempt.cancelled() && !attempt.failed());
    }

    #[test]
    fn sizes_and_shares_are_told_in_few_digits() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1_250, "1.2 KB"), (74_000, "74.0 KB"), (5_242_880, "5.2 MB")]
        {
            assert_eq!(size(bytes), text);
        }
        let percent = |attempts, quota| Month { now: Timestamp(0), quota, attempts }.percent();
        assert_eq!(
            [percent(5, Some(10)), percent(11, Some(10)), percent(0, Some(0)), percent(5, None)],
            [50, 100, 100, 0]
        );
        assert_eq!(Cursor::parse("5.6"), Some(Cursor { at: 5, id: 6 }));
        assert_eq!(Cursor::parse("5.6.7"), None);
    }
}
