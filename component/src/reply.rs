//! Responses whose body is complete before they are sent.

use spin_sdk::wasip3::http::types::{Fields, Response};

use crate::body::{OutgoingBody, Transfer};

/// Names and values of headers.
pub type Headers = Vec<(String, Vec<u8>)>;

/// The headers in the platform's form; no headers at all if the platform refuses one of them.
#[must_use]
pub fn fields(entries: &[(String, Vec<u8>)]) -> Fields {
    Fields::from_list(entries).unwrap_or_else(|_| Fields::new())
}

/// A response with this body, and the transfer of the body; sets `content-length`.
#[must_use]
pub fn buffered(status: u16, mut headers: Headers, body: Vec<u8>) -> (Response, Transfer) {
    headers.push(("content-length".into(), body.len().to_string().into_bytes()));
    let OutgoingBody { contents, trailers, transfer } = OutgoingBody::new(body);
    let (response, _sent) = Response::new(fields(&headers), Some(contents), trailers);
    let set = response.set_status_code(status);
    debug_assert!(set.is_ok(), "the statuses are constants");
    (response, transfer)
}
