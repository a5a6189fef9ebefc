//! Answers: headers built anew, never copied from the farm, and a body handed on unread.
//!
//! Invariant: every answer has `x-request-id` and `cache-control: no-store`; a file keeps its
//! declared length, so that a broken transfer can be told from a whole file.

use platen_component::reply::{self, fields};
use platen_shared::{format::OutputFormat, wire};
use spin_sdk::wasip3::http::types::Response;

use super::{ApiError, Standing, farm::FileBody, farm::Trace};

/// A rendered file.
pub(super) struct File {
    pub(super) format: OutputFormat,
    pub(super) disposition: String,
    pub(super) body: FileBody,
}

/// Builds the answer.
pub(super) fn response(
    answer: Result<File, ApiError>,
    trace: &Trace,
    standing: Option<&Standing>,
) -> Response {
    let mut headers: Vec<(String, Vec<u8>)> = vec![
        (wire::REQUEST_ID.into(), trace.request_id.clone().into_bytes()),
        ("cache-control".into(), b"no-store".to_vec()),
    ];
    let mut set = |name: &str, value: String| headers.push((name.to_owned(), value.into_bytes()));
    if let Some(Standing { usage, month }) = standing {
        for (name, value) in usage.headers(month) {
            set(name, value);
        }
    }
    match answer {
        Ok(File { format, disposition, body }) => {
            set("content-type", format.content_type().to_owned());
            set("content-disposition", disposition);
            // What a browser must never do with a file somebody else's markup made: guess.
            set("x-content-type-options", "nosniff".to_owned());
            if let Some(length) = body.length {
                headers.push(("content-length".into(), length));
            }
            let (response, _sent) = Response::new(fields(&headers), Some(body.bytes), body.trailers);
            response
        }
        Err(error) => {
            let body = error.body();
            set("content-type", "application/json".to_owned());
            if let Some(seconds) = error.retry_after() {
                set("retry-after", seconds.to_string());
            }
            if error == ApiError::MethodNotAllowed {
                set("allow", "POST".to_owned());
            }
            reply::buffered(error.status(), headers, body)
        }
    }
}
