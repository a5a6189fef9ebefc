//! Responses of the server itself.
//!
//! Invariant: an error is `{"error": "…"}`, must not be cached, and has the request id; its message has no
//! internal details.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use platen_shared::wire;
use wasmtime_wasi_http::WasiBody;

/// Why the server responds instead of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerError {
    /// No route matches the path.
    NotFound,
    /// The request has no host, or an invalid one.
    NoHost,
    UploadTimedOut,
    TooManyRequests,
    ComponentTimedOut,
    ComponentFailed,
}

impl ServerError {
    /// The status and the message of its response.
    fn parts(self) -> (StatusCode, &'static str) {
        match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "Not found"),
            Self::NoHost => (StatusCode::BAD_REQUEST, "The request has no valid host"),
            Self::UploadTimedOut => (StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time"),
            Self::TooManyRequests => {
                (StatusCode::SERVICE_UNAVAILABLE, "The server is busy, try again shortly")
            }
            Self::ComponentTimedOut | Self::ComponentFailed => {
                (StatusCode::INTERNAL_SERVER_ERROR, "Internal server error")
            }
        }
    }
}

pub(super) fn response(error: ServerError, request_id: &str) -> Response<WasiBody> {
    let (status, message) = error.parts();
    let body = serde_json::json!({ "error": message }).to_string();
    let mut response = Response::new(buffered(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static(wire::REQUEST_ID), id);
    }
    match error {
        ServerError::TooManyRequests => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        // The rest of the body may still arrive.
        ServerError::UploadTimedOut => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

/// The response of the health check.
pub(super) fn healthy() -> Response<WasiBody> {
    Response::new(buffered(Bytes::from_static(b"OK")))
}

fn buffered(bytes: Bytes) -> WasiBody {
    Full::new(bytes).map_err(Into::into).boxed_unsync()
}
