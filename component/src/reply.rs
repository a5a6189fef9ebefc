//! Responses whose body is complete before they are sent.

use spin_sdk::{
    wasip3::{
        http::types::{Fields, Response},
        wit_future, wit_stream,
    },
    wit_bindgen,
};

/// Names and values of headers.
pub type Headers = Vec<(String, Vec<u8>)>;

/// The headers in the platform's form; no headers at all if the platform refuses one of them.
#[must_use]
pub fn fields(entries: &[(String, Vec<u8>)]) -> Fields {
    Fields::from_list(entries).unwrap_or_else(|_| Fields::new())
}

/// A response with this body; sets `content-length`.
#[must_use]
pub fn buffered(status: u16, mut headers: Headers, body: Vec<u8>) -> Response {
    headers.push(("content-length".into(), body.len().to_string().into_bytes()));
    let (mut writer, reader) = wit_stream::new();
    let (trailers_writer, trailers) = wit_future::new(|| Ok(None));
    drop(trailers_writer);
    let (response, _sent) = Response::new(fields(&headers), Some(reader), trailers);
    let set = response.set_status_code(status);
    debug_assert!(set.is_ok(), "the statuses are constants");
    wit_bindgen::spawn(async move {
        writer.write_all(body).await;
    });
    response
}
