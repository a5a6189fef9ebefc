//! Why a farm did not render a job, as it says so on the wire: `{"code": "…", …}`.
//!
//! Invariant: the code alone decides the public status, the public message and whether the
//! attempt counts. A farm cannot put words in the edge's mouth, and no message names an address.

use serde::{Deserialize, Serialize};

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
        crate::limits::IMAGE_PIXELS
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
}

impl Refusal {
    /// The public HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Unauthorized
            | Self::InvalidJob
            | Self::QueueFull { .. }
            | Self::NoSlotInTime { .. }
            | Self::Draining
            | Self::NoBrowser
            | Self::NameServerFailed => 503,
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
            | Self::LoadStopped => 422,
            Self::Deadline => 504,
            Self::Broken => 502,
        }
    }

    /// Whether a browser ran for it, so that the attempt counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.status() != 503
    }

    /// Seconds for `retry-after`, where waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Self::QueueFull { retry_after } | Self::NoSlotInTime { retry_after } => Some(*retry_after),
            refusal if refusal.status() == 503 => Some(5),
            _ => None,
        }
    }
}
