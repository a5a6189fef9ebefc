//! Reads a request body: its declared type, and its bytes up to a limit.
//!
//! Invariant: memory holds at most the limit plus one read, independent of what a caller declares or sends.

use spin_sdk::{
    wasip3::{
        http::types::{Fields, Request},
        wit_future,
    },
    wit_bindgen::StreamResult,
};

/// Size of a read if the caller does not declare a length.
const READ_BYTES: usize = 64 * 1024;
/// Memory that is reserved for a declared length before any byte has arrived.
const MAX_RESERVE_BYTES: usize = 1024 * 1024;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than the limit.
    #[error("the body is over the limit")]
    TooLarge,
    /// The body ended early.
    #[error("the body could not be read to its end")]
    Incomplete,
}

/// Whether `content-type` has one value and it names this type; parameters are ignored.
#[must_use]
pub fn is_of_type(values: &[Vec<u8>], expected: &str) -> bool {
    let [value] = values else { return false };
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(expected.as_bytes())
}

/// Reads the body, at most `max` bytes. A declared length over the limit is refused before
/// anything is read.
///
/// # Errors
/// When the body is over the limit or ends early.
pub async fn read(request: Request, headers: &Fields, max: usize) -> Result<Vec<u8>, BodyError> {
    let declared = headers.get("content-length");
    let declared = declared.first().and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > max as u64) {
        return Err(BodyError::TooLarge);
    }
    let reserve = declared.and_then(|declared| usize::try_from(declared).ok()).map_or(READ_BYTES, |n| n + 1);
    let (_read_result, read_reader) = wit_future::new(|| Ok(()));
    let (mut stream, trailers) = Request::consume_body(request, read_reader);
    let mut bytes = Vec::with_capacity(reserve.min(MAX_RESERVE_BYTES));
    loop {
        if bytes.capacity() - bytes.len() < READ_BYTES / 4 {
            bytes.reserve(READ_BYTES.max(bytes.len()));
        }
        let (result, filled) = stream.read(bytes).await;
        bytes = filled;
        if bytes.len() > max {
            return Err(BodyError::TooLarge);
        }
        match result {
            StreamResult::Complete(_) => {}
            StreamResult::Dropped | StreamResult::Cancelled => break,
        }
    }
    trailers.await.map_err(|_| BodyError::Incomplete)?;
    Ok(bytes)
}
