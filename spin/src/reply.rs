//! Responses: those whose body is complete before they are sent, and those whose body is written meanwhile.

use spin_sdk::{
    wasip3::http::types::{Fields, Response},
    wit_bindgen::StreamReader,
};

use crate::body::{BodyWriter, OutgoingBody, TrailersReader, Transfer};

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
    (response(status, &headers, contents, trailers), transfer)
}

/// A response whose body is what `write` writes, and the transfer of the body. `write` returns whether the body is
/// complete; otherwise the transfer is aborted, so that the client does not take the part that it has for the whole.
#[must_use]
pub fn streamed<W: Future<Output = bool> + 'static>(
    status: u16,
    headers: &Headers,
    write: impl FnOnce(BodyWriter) -> W,
) -> (Response, Transfer) {
    let OutgoingBody { contents, trailers, transfer } = OutgoingBody::written_by(write);
    (response(status, headers, contents, trailers), transfer)
}

fn response(
    status: u16,
    headers: &Headers,
    contents: StreamReader<u8>,
    trailers: TrailersReader,
) -> Response {
    let (response, _sent) = Response::new(fields(headers), Some(contents), trailers);
    let set = response.set_status_code(status);
    debug_assert!(set.is_ok(), "the statuses are constants");
    response
}
