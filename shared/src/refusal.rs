//! Why a farm did not render a job, as it says so on the wire: `{"code": "…", …}`.
//!
//! Invariant: the code alone decides the class of the failure ([`FailureClass`]) and with it the
//! public status and whether the attempt counts. The edge writes every message that a caller reads,
//! and no message names an address.

use serde::{Deserialize, Serialize};

use crate::failure::FailureClass;

/// A farm's refusal. `Display` is the public message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    /// The edge and the farm do not share a token: a mistake of the operator.
    #[error("The renderer is not available")]
    Unauthorized,
    /// The job does not parse: edge and farm are of different versions.
    #[error("The renderer is not available")]
    InvalidJob,
    /// Every slot and every queue place is taken.
    #[error("The renderer is busy, try again shortly")]
    QueueFull {
        /// When a place is likely, in seconds.
        retry_after: u32,
    },
    /// The deadline passed, or would have, before a slot was free.
    #[error("The renderer is busy, try again shortly")]
    NoSlotInTime {
        /// When a slot is likely, in seconds.
        retry_after: u32,
    },
    /// The farm is shutting down.
    #[error("The renderer is not available")]
    Draining,
    /// No browser could be started.
    #[error("The renderer is not available")]
    NoBrowser,
    /// No name server answered.
    #[error("The name server did not answer, try again shortly")]
    NameServerFailed,
    /// The host name of the page has no address.
    #[error("The name \"{host}\" could not be resolved")]
    NameNotFound {
        /// The URL's host.
        host: String,
    },
    /// The host name of the page leads to an address that is not public.
    #[error("The address of \"{host}\" is not public")]
    AddressNotPublic {
        /// The URL's host.
        host: String,
    },
    /// The port of the page is not one that pages may reach.
    #[error("The port of \"{host}\" is not allowed")]
    PortNotAllowed {
        /// The URL's host.
        host: String,
    },
    /// Nobody listens there.
    #[error("\"{host}\" refused the connection")]
    ConnectionRefused {
        /// The URL's host.
        host: String,
    },
    /// The connection was made or tried, and failed.
    #[error("The connection to \"{host}\" failed")]
    ConnectionFailed {
        /// The URL's host.
        host: String,
    },
    /// No trustworthy TLS connection.
    #[error("The TLS connection to \"{host}\" failed")]
    Tls {
        /// The URL's host.
        host: String,
    },
    /// Redirected too often.
    #[error("\"{host}\" redirected too many times")]
    TooManyRedirects {
        /// The URL's host.
        host: String,
    },
    /// The URL answers with something that is not a page, such as a download.
    #[error("\"{host}\" did not answer with a page")]
    NotAPage {
        /// The URL's host.
        host: String,
    },
    /// The picture would have more pixels than allowed, or more than its format can hold.
    #[error(
        "The page is too large: its image would be over the limit of its format or of {} pixels",
        crate::limits::MAX_IMAGE_PIXELS
    )]
    PageTooLarge,
    /// The page itself broke: it ran out of memory, or killed its renderer every time.
    #[error("The page crashed while it was rendered")]
    PageCrashed,
    /// The page used more memory than the operator allows one page.
    #[error("The page used more memory than a page may use")]
    PageMemoryExceeded,
    /// The page closed itself before it was captured.
    #[error("The page closed itself before it was rendered")]
    PageClosed,
    /// The page stopped its own loading (`window.stop()`) before the milestone was reached.
    #[error("The page stopped loading before it was complete")]
    LoadStopped,
    /// The deadline passed while the job ran.
    #[error("The render did not finish in time")]
    Deadline,
    /// The browser or the farm broke under the job.
    #[error("The renderer failed")]
    Broken,
    /// The caller disconnected, and the job was cancelled.
    #[error("The client disconnected")]
    Cancelled {
        /// A page had begun to run.
        page_ran: bool,
    },
}

impl Refusal {
    /// The class of the failure. The table by which every tier goes.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Unauthorized
            | Self::InvalidJob
            | Self::QueueFull { .. }
            | Self::NoSlotInTime { .. }
            | Self::Draining
            | Self::NoBrowser
            | Self::NameServerFailed => FailureClass::RendererUnavailable,
            Self::NameNotFound { .. }
            | Self::AddressNotPublic { .. }
            | Self::PortNotAllowed { .. }
            | Self::ConnectionRefused { .. }
            | Self::ConnectionFailed { .. }
            | Self::Tls { .. }
            | Self::TooManyRedirects { .. }
            | Self::NotAPage { .. }
            | Self::PageTooLarge
            | Self::PageCrashed
            | Self::PageMemoryExceeded
            | Self::PageClosed
            | Self::LoadStopped => FailureClass::PageFailed,
            Self::Deadline => FailureClass::DeadlineExceeded,
            Self::Broken => FailureClass::RendererFailed,
            Self::Cancelled { page_ran } => FailureClass::Cancelled { page_ran: *page_ran },
        }
    }

    /// The public HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.class().status()
    }

    /// Whether the attempt counts against the quota.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.class().is_counted()
    }

    /// The code on the wire, which is also its name in counters and log lines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::InvalidJob => "invalid_job",
            Self::QueueFull { .. } => "queue_full",
            Self::NoSlotInTime { .. } => "no_slot_in_time",
            Self::Draining => "draining",
            Self::NoBrowser => "no_browser",
            Self::NameServerFailed => "name_server_failed",
            Self::NameNotFound { .. } => "name_not_found",
            Self::AddressNotPublic { .. } => "address_not_public",
            Self::PortNotAllowed { .. } => "port_not_allowed",
            Self::ConnectionRefused { .. } => "connection_refused",
            Self::ConnectionFailed { .. } => "connection_failed",
            Self::Tls { .. } => "tls",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::NotAPage { .. } => "not_a_page",
            Self::PageTooLarge => "page_too_large",
            Self::PageCrashed => "page_crashed",
            Self::PageMemoryExceeded => "page_memory_exceeded",
            Self::PageClosed => "page_closed",
            Self::LoadStopped => "load_stopped",
            Self::Deadline => "deadline",
            Self::Broken => "broken",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// The refusal of a job whose page had not begun to run: what else would be a failure of its page is
    /// one of the renderer before it ran.
    #[must_use]
    pub fn before_page_ran(self) -> Self {
        match self {
            Self::Deadline => Self::NoSlotInTime { retry_after: RETRY_AFTER_SECONDS },
            Self::Broken | Self::PageCrashed => Self::NoBrowser,
            refusal => refusal,
        }
    }

    /// Seconds for `retry-after`, where waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Self::QueueFull { retry_after } | Self::NoSlotInTime { retry_after } => Some(*retry_after),
            refusal if refusal.class() == FailureClass::RendererUnavailable => Some(RETRY_AFTER_SECONDS),
            _ => None,
        }
    }
}

/// About the time that a browser or a farm takes to start, in seconds.
pub const RETRY_AFTER_SECONDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_broke_before_the_page_ran_is_not_counted() {
        for refusal in [Refusal::Deadline, Refusal::Broken, Refusal::PageCrashed] {
            assert!(refusal.is_counted());
            assert_eq!(refusal.before_page_ran().class(), FailureClass::RendererUnavailable);
        }
        // Where the caller's URL leads is known before.
        let host = || "a.example".to_owned();
        for refusal in [Refusal::NameNotFound { host: host() }, Refusal::QueueFull { retry_after: 7 }] {
            assert_eq!(refusal.clone().before_page_ran(), refusal);
        }
    }

    /// Code, status, counted, seconds to wait: one row for each refusal.
    #[test]
    fn each_code_has_its_row() {
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
            (Refusal::PageMemoryExceeded, "page_memory_exceeded", 422, true, None),
            (Refusal::PageClosed, "page_closed", 422, true, None),
            (Refusal::LoadStopped, "load_stopped", 422, true, None),
            (Refusal::Deadline, "deadline", 504, true, None),
            (Refusal::Broken, "broken", 502, true, None),
            (Refusal::Cancelled { page_ran: true }, "cancelled", 499, true, None),
            (Refusal::Cancelled { page_ran: false }, "cancelled", 499, false, None),
        ];
        for (refusal, code, status, counted, retry_after) in rows {
            let row = (refusal.code(), refusal.status(), refusal.is_counted(), refusal.retry_after());
            assert_eq!(row, (code, status, counted, retry_after));
            let wire = serde_json::to_value(&refusal).unwrap();
            assert_eq!(wire["code"], code);
            assert_eq!(serde_json::from_value::<Refusal>(wire).unwrap(), refusal);
        }
    }
}
