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
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::UploadTimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyRequests => StatusCode::SERVICE_UNAVAILABLE,
            Self::ComponentTimedOut | Self::ComponentFailed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::NoHost => "The request has no valid host",
            Self::UploadTimedOut => "The request body did not arrive in time",
            Self::TooManyRequests => "The server is busy, try again shortly",
            Self::ComponentTimedOut | Self::ComponentFailed => "Internal server error",
        }
    }
}

pub(super) fn response(error: ServerError, request_id: &str) -> Response<WasiBody> {
    let body = serde_json::json!({ "error": error.message() }).to_string();
    let mut response = Response::new(buffered(body.into()));
    *response.status_mut() = error.status();
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
