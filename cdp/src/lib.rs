//! A client of the Chrome `DevTools` protocol over Chromium's debugging pipe, with the generated types of
//! `chromiumoxide_cdp`.
//!
//! A pipe instead of a WebSocket: there is no TCP debugging port that a page could reach, the end of the
//! browser closes the pipe at once, and no domain is enabled that the caller does not enable.
//!
//! Invariant: when the pipe closes, every call in progress fails and every event stream ends. What a page lets its
//! browser send takes a bounded amount of memory.

#![forbid(unsafe_code)]

mod call;
mod connection;
mod event;
mod incoming;
mod message;
mod pipe;

pub use call::{Call, Reply};
pub use connection::{Connection, Events, Session};
pub use event::Event;
pub use incoming::MIN_CUT_STRING_BYTES;
pub use pipe::BrowserPipes;

/// Why a call has no result, or an event cannot be read. `method` is the command or the event, and `source` what
/// the browser replied or the first difference from what was expected.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are described above")]
pub enum CdpError {
    /// The browser has exited, or has closed its pipe.
    #[error("the browser closed its pipe")]
    Closed,
    /// The page has closed or crashed.
    #[error("the page is gone")]
    PageGone,
    /// The browser replied with an error.
    #[error("the browser refused {method}")]
    Refused { method: String, source: chromiumoxide_types::Error },
    /// The reply has more bytes than are kept.
    #[error("the reply to {method} is too large")]
    TooLarge { method: String },
    /// A reply or an event does not have the expected type. The text of the error may have a value, which may be that of a page,
    /// so that it is no source.
    #[error("cannot decode {method}: {:?} error at line {}, column {}", .error.classify(), .error.line(), .error.column())]
    Decode { method: String, error: serde_json::Error },
    /// The file in a reply is not base64.
    #[error("the file in the reply to {method} is not base64")]
    File { method: String, source: base64::DecodeSliceError },
    /// A command cannot be written as JSON.
    #[error("cannot encode {method}")]
    Encode { method: String, source: serde_json::Error },
}
