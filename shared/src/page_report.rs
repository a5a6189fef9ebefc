//! What the page of a file did, and the headers that say so, from the farm and to the caller.
//!
//! Invariant: the value of a header is printable ASCII.

use std::fmt::Display;

use url::Url;

/// HTTP status of the page, if the job has a URL.
pub const PAGE_STATUS: &str = "x-page-status";
/// `false` if a request was still open when a wait for the network to be idle ended; absent otherwise.
pub const PAGE_IDLE: &str = "x-page-idle";
/// Number of errors.
pub const PAGE_ERRORS: &str = "x-page-errors";
/// Number of failed requests.
pub const PAGE_FAILED_REQUESTS: &str = "x-page-failed-requests";
/// Number of sheets of a PDF.
pub const PAGES: &str = "x-pages";
/// Address of the document, if the job has a URL.
pub const PAGE_URL: &str = "x-page-url";

/// A larger number of errors or failed requests is given as this one.
pub const MAX_COUNT: u32 = 10_000;
/// A longer address is left out, in characters.
pub const MAX_URL_CHARS: usize = 2_048;

/// What the page of a file did until the file was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageReport {
    /// HTTP status, if the job has a URL.
    pub status: Option<u16>,
    /// Nothing was open that a wait for the network to be idle has left out.
    pub is_idle: bool,
    /// Number of exceptions and rejected promises that nothing handled, at most [`MAX_COUNT`].
    pub errors: u32,
    /// Number of requests that had no response, or a status of 400 or more, at most [`MAX_COUNT`].
    pub failed_requests: u32,
    /// Number of sheets of a PDF.
    pub sheets: Option<u32>,
    /// Address of the document that the file shows, without credentials and fragment, if the job has a URL: at most
    /// [`MAX_URL_CHARS`] of printable ASCII.
    pub url: Option<String>,
}

impl PageReport {
    /// The names and values of the headers.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        fn text(value: Option<impl Display>) -> Option<String> {
            value.map(|value| value.to_string())
        }
        let values = [
            (PAGE_STATUS, text(self.status)),
            (PAGE_IDLE, text((!self.is_idle).then_some(false))),
            (PAGE_ERRORS, text(Some(self.errors))),
            (PAGE_FAILED_REQUESTS, text(Some(self.failed_requests))),
            (PAGES, text(self.sheets)),
            (PAGE_URL, self.url.clone()),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// The host of the address.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        Url::parse(self.url.as_ref()?).ok()?.host_str().map(str::to_owned)
    }

    /// The report of a response with these headers. A value that no farm writes counts as absent.
    #[must_use]
    pub fn of_headers(header: impl Fn(&str) -> Option<String>) -> Self {
        let count = |name| header(name)?.parse::<u32>().ok();
        Self {
            status: header(PAGE_STATUS)
                .and_then(|status| status.parse().ok())
                .filter(|it| (100..1_000).contains(it)),
            is_idle: header(PAGE_IDLE).as_deref() != Some("false"),
            errors: count(PAGE_ERRORS).unwrap_or_default().min(MAX_COUNT),
            failed_requests: count(PAGE_FAILED_REQUESTS).unwrap_or_default().min(MAX_COUNT),
            sheets: count(PAGES),
            url: header(PAGE_URL).filter(|url| is_header_value(url)),
        }
    }
}

impl Default for PageReport {
    fn default() -> Self {
        Self { status: None, is_idle: true, errors: 0, failed_requests: 0, sheets: None, url: None }
    }
}

/// Whether an address can be a header's value and is short enough for it.
#[must_use]
pub fn is_header_value(url: &str) -> bool {
    (1..=MAX_URL_CHARS).contains(&url.len()) && url.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let full = PageReport {
            status: Some(404),
            is_idle: false,
            errors: 3,
            failed_requests: MAX_COUNT,
            sheets: Some(2),
            url: Some("https://a.example/x?y=%C3%A4".to_owned()),
        };
        for report in [full, PageReport::default()] {
            let headers: Vec<_> = report.headers().collect();
            let find = |name: &str| Some(headers.iter().find(|(it, _)| *it == name)?.1.clone());
            assert_eq!(PageReport::of_headers(find), report);
            assert_eq!(report.host(), report.url.as_ref().map(|_| "a.example".to_owned()));
        }
    }

    #[test]
    fn values_that_no_farm_writes_are_absent() {
        for (name, value) in [
            (PAGE_STATUS, "99".to_owned()),
            (PAGE_STATUS, "20000".to_owned()),
            (PAGE_IDLE, "no".to_owned()),
            (PAGE_ERRORS, "-1".to_owned()),
            (PAGES, "two".to_owned()),
            (PAGE_URL, String::new()),
            (PAGE_URL, "https://a.example/\r\nx: y".to_owned()),
            (PAGE_URL, "https://ä.example/".to_owned()),
            (PAGE_URL, format!("https://a.example/{}", "x".repeat(MAX_URL_CHARS))),
        ] {
            let report = PageReport::of_headers(|it| (it == name).then(|| value.clone()));
            assert_eq!(report, PageReport::default(), "{name}: {value:.50}");
        }
        let many = PageReport::of_headers(|it| (it == PAGE_ERRORS).then(|| "20000".to_owned()));
        assert_eq!(many.errors, MAX_COUNT);
    }
}
