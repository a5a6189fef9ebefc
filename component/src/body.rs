//! Reading a request body: its declared type and its bytes, with a cap.
//!
//! Invariant: never more than the cap plus one read is held, whatever a caller declares or sends.

use spin_sdk::{
    wasip3::{
        http::types::{Fields, Request},
        wit_future,
    },
    wit_bindgen::StreamResult,
};

/// Bytes asked for at a time where the caller did not declare a length.
const READ_BYTES: usize = 64 * 1024;
/// Most that a declared length reserves before anything has arrived.
const RESERVE_BYTES: usize = 1024 * 1024;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Over the cap.
    #[error("the body is over the limit")]
    TooLarge,
    /// It stopped in the middle.
    #[error("the body could not be read to its end")]
    Incomplete,
}

/// Whether the values of `content-type` say this type; parameters do not matter.
#[must_use]
pub fn is_of_type(values: &[Vec<u8>], expected: &str) -> bool {
    let [value] = values else { return false };
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(expected.as_bytes())
}

/// The whole body, at most `cap` bytes. One over the cap is refused by its declared length alone
/// where there is one.
///
/// # Errors
/// A body over the cap, or one that breaks off.
pub async fn read(request: Request, headers: &Fields, cap: usize) -> Result<Vec<u8>, BodyError> {
    let declared = headers.get("content-length");
    let declared = declared.first().and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > cap as u64) {
        return Err(BodyError::TooLarge);
    }
    let reserve = declared.and_then(|declared| usize::try_from(declared).ok()).map_or(READ_BYTES, |n| n + 1);
    let (_read_result, read_reader) = wit_future::new(|| Ok(()));
    let (mut stream, trailers) = Request::consume_body(request, read_reader);
    let mut bytes = Vec::with_capacity(reserve.min(RESERVE_BYTES));
    loop {
        if bytes.capacity() - bytes.len() < READ_BYTES / 4 {
            bytes.reserve(READ_BYTES.max(bytes.len()));
        }
        let (result, filled) = stream.read(bytes).await;
        bytes = filled;
        if bytes.len() > cap {
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
