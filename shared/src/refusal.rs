//! The reasons for which a farm does not render a job, as JSON: `{"code": "…", …}`.
//!
//! Invariant: each has a [`Reason`] of the same name, which decides the public status and whether the attempt counts. The edge writes every client-visible message itself, and no
//! message contains an address.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::reason::Reason;

/// The reason why a job was not rendered. `Display` is the public message.
///
/// `host` is that of the job's URL, `retry_after` the seconds until a slot or a queue position is likely to be
/// free, `mebibytes` the limit, and `page_ran` whether a page had begun to run.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames, thiserror::Error,
)]
#[serde(tag = "code", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are described above")]
pub enum Refusal {
    /// The tokens of the edge and the farm differ: a configuration error of the operator.
    #[error("The renderer is not available")]
    Unauthorized,
    /// The job cannot be parsed: edge and farm have different versions.
    #[error("The renderer is not available")]
    InvalidJob,
    /// All slots and queue positions are taken.
    #[error("The renderer is busy, try again shortly")]
    QueueFull { retry_after: u32 },
    /// No slot becomes free before the deadline.
    #[error("The renderer is busy, try again shortly")]
    NoSlotInTime { retry_after: u32 },
    /// The farm is shutting down.
    #[error("The renderer is not available")]
    Draining,
    /// No browser could be started.
    #[error("The renderer is not available")]
    NoBrowser,
    /// No name server replied.
    #[error("The name server did not answer, try again shortly")]
    NameServerFailed,
    /// The host name of the URL does not exist or has no address.
    #[error("The name \"{host}\" could not be resolved")]
    NameNotFound { host: String },
    /// The host of the URL resolves to an address that is not public.
    #[error("The address of \"{host}\" is not public")]
    AddressNotPublic { host: String },
    /// Pages may not connect to the port of the URL.
    #[error("The port of \"{host}\" is not allowed")]
    PortNotAllowed { host: String },
    /// No service listens on the host and port of the URL.
    #[error("\"{host}\" refused the connection")]
    ConnectionRefused { host: String },
    /// The connection could not be established, or broke.
    #[error("The connection to \"{host}\" failed")]
    ConnectionFailed { host: String },
    /// The TLS handshake failed or the certificate is not trusted.
    #[error("The TLS connection to \"{host}\" failed")]
    Tls { host: String },
    /// The URL redirects more often than the browser follows.
    #[error("\"{host}\" redirected too many times")]
    TooManyRedirects { host: String },
    /// The response is not a document that the browser shows, such as a download.
    #[error("\"{host}\" did not answer with a page")]
    NotAPage { host: String },
    /// The page has an HTTP status of 400 or more, and the request says that this is a failure.
    #[error("\"{host}\" answered with status {status}")]
    PageStatus { host: String, status: u16 },
    /// A selector in this field of the request is not valid CSS. Found before the page ran.
    #[error("\"{field}\" must be a valid CSS selector")]
    InvalidSelector { field: String },
    /// No element matches `selector`.
    #[error("No element of the page matches \"selector\"")]
    NoSuchElement,
    /// The element that `selector` matches has no area.
    #[error("The element that matches \"selector\" has no area")]
    EmptyElement,
    /// No element that `waitForSelector` matches became visible in time.
    #[error("No visible element has matched \"waitForSelector\" in time")]
    ElementNotVisible,
    /// The PDF has fewer pages.
    #[error("\"pageRanges\" has pages after the last one")]
    PageRangeExceeded,
    /// The margins are as wide or as tall as the size that the page has chosen.
    #[error("\"margin\" leaves no space for the page")]
    NoSpaceBetweenMargins,
    /// The header or the footer cannot be printed.
    #[error(
        "\"headerHtml\" or \"footerHtml\" could not be printed; they must not refer to style sheets or fonts"
    )]
    HeaderFailed,
    /// The content does not fit on one sheet.
    #[error("The content does not fit on one page of at most {} mm", crate::limits::PDF_SIDE_MM_RANGE.end())]
    NotOnePage,
    /// The image would exceed the limit of pixels, or that of its format.
    #[error(
        "The page is too large: its image would be over the limit of its format or of {} pixels",
        crate::limits::MAX_IMAGE_PIXELS
    )]
    PageTooLarge,
    /// The page exhausts the memory of its renderer or crashes it on every try.
    #[error("The page crashed while it was rendered")]
    PageCrashed,
    /// The page exceeded the memory limit that the operator sets for one page.
    #[error("The page used more memory than a page may use: {mebibytes} MiB")]
    PageMemoryExceeded { mebibytes: u32 },
    /// The page closed itself before it was captured.
    #[error("The page closed itself before it was rendered")]
    PageClosed,
    /// The page stopped its own loading (`window.stop()`) before the `waitUntil` milestone.
    #[error("The page stopped loading before it was complete")]
    LoadStopped,
    /// The deadline passed while the job ran.
    #[error("The render did not finish in time")]
    Deadline,
    /// The browser or the farm failed while the job ran.
    #[error("The renderer failed")]
    Broken,
    /// The caller disconnected, and the job was cancelled.
    #[error("The client disconnected")]
    Cancelled { page_ran: bool },
}

impl Refusal {
    /// The reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        Reason::find(self.code()).unwrap_or(Reason::Broken)
    }

    /// Whether the attempt counts against the quota; if not, it is refunded.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Cancelled { page_ran } => *page_ran,
            refusal => refusal.reason().is_counted(),
        }
    }

    /// The `code` in JSON, which is also the name in metrics and log lines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// The refusal of a job whose page had not begun to run: a failure that would otherwise count against
    /// the page becomes one of the renderer.
    #[must_use]
    pub fn before_page_ran(self) -> Self {
        match self {
            Self::Deadline => Self::NoSlotInTime { retry_after: RETRY_AFTER_SECONDS },
            Self::Broken | Self::PageCrashed => Self::NoBrowser,
            refusal => refusal,
        }
    }

    /// The field of the request that is the cause, if there is one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::InvalidSelector { field } => Some(field),
            Self::NoSuchElement | Self::EmptyElement => Some("selector"),
            Self::ElementNotVisible => Some("waitForSelector"),
            Self::PageRangeExceeded => Some("pageRanges"),
            Self::NoSpaceBetweenMargins => Some("margin"),
            Self::NotOnePage => Some("singlePage"),
            Self::NameNotFound { .. }
            | Self::AddressNotPublic { .. }
            | Self::PortNotAllowed { .. }
            | Self::ConnectionRefused { .. }
            | Self::ConnectionFailed { .. }
            | Self::Tls { .. }
            | Self::TooManyRedirects { .. }
            | Self::NotAPage { .. } => Some("url"),
            _ => None,
        }
    }

    /// Seconds for the `retry-after` header; `None` where a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Self::QueueFull { retry_after } | Self::NoSlotInTime { retry_after } => Some(*retry_after),
            refusal if refusal.reason().status() == 503 => Some(RETRY_AFTER_SECONDS),
            _ => None,
        }
    }
}

/// Default of `retry-after`: about the time in which a browser or a farm starts, in seconds.
pub const RETRY_AFTER_SECONDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_before_the_page_ran_is_not_counted() {
        for refusal in [Refusal::Deadline, Refusal::Broken, Refusal::PageCrashed] {
            assert!(refusal.is_counted());
            assert_eq!(refusal.before_page_ran().reason().status(), 503);
        }
        // The URL of the caller is checked before a page runs, so these stay.
        let host = || "a.example".to_owned();
        for refusal in [Refusal::NameNotFound { host: host() }, Refusal::QueueFull { retry_after: 7 }] {
            assert_eq!(refusal.clone().before_page_ran(), refusal);
        }
    }

    /// One row for each refusal: code, status, counted, `retry-after`.
    #[test]
    fn each_refusal_has_the_expected_code_status_and_count() {
        let host = || "a.example".to_owned();
        let rows: [(Refusal, &str, u16, bool, Option<u32>); 24] = [
            (Refusal::Unauthorized, "unauthorized", 503, false, Some(5)),
            (Refusal::InvalidJob, "invalid_job", 503, false, Some(5)),
            (Refusal::QueueFull { retry_after: 7 }, "queue_full", 503, false, Some(7)),
            (Refusal::NoSlotInTime { retry_after: 8 }, "no_slot_in_time", 503, false, Some(8)),
            (Refusal::Draining, "draining", 503, false, Some(5)),
            (Refusal::NoBrowser, "no_browser", 503, false, Some(5)),
            (Refusal::NameServerFailed, "name_server_failed", 503, false, Some(5)),
            (Refusal::NameNotFound { host: host() }, "name_not_found", 422, true, None),
            (Refusal::AddressNotPublic { host: host() }, "address_not_public", 422, true, None),
            (Refusal::PortNotAllowed { host: host() }, "port_not_allowed", 422, true, None),
            (Refusal::ConnectionRefused { host: host() }, "connection_refused", 422, true, None),
            (Refusal::ConnectionFailed { host: host() }, "connection_failed", 422, true, None),
            (Refusal::Tls { host: host() }, "tls", 422, true, None),
            (Refusal::TooManyRedirects { host: host() }, "too_many_redirects", 422, true, None),
            (Refusal::NotAPage { host: host() }, "not_a_page", 422, true, None),
            (Refusal::PageTooLarge, "page_too_large", 422, true, None),
            (Refusal::PageCrashed, "page_crashed", 422, true, None),
            (Refusal::PageMemoryExceeded { mebibytes: 9 }, "page_memory_exceeded", 422, true, None),
            (Refusal::PageClosed, "page_closed", 422, true, None),
            (Refusal::LoadStopped, "load_stopped", 422, true, None),
            (Refusal::Deadline, "deadline", 504, true, None),
            (Refusal::Broken, "broken", 502, true, None),
            (Refusal::Cancelled { page_ran: true }, "cancelled", 499, true, None),
            (Refusal::Cancelled { page_ran: false }, "cancelled", 499, false, None),
        ];
        for (refusal, code, status, counted, retry_after) in rows {
            let reason = refusal.reason();
            let row = (reason.code(), reason.status(), refusal.is_counted(), refusal.retry_after());
            assert_eq!(row, (code, status, counted, retry_after));
            let wire = serde_json::to_value(&refusal).unwrap();
            assert_eq!(wire["code"], code);
            assert_eq!(serde_json::from_value::<Refusal>(wire).unwrap(), refusal);
        }
    }

    #[test]
    fn each_refusal_has_its_reason() {
        for code in Refusal::VARIANTS {
            assert!(Reason::find(code).is_some(), "{code}");
        }
    }
}
