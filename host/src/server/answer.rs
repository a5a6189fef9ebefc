//! Answers of the server itself.
//!
//! Invariant: an error is `{"error": "…"}`, never stored by anybody, and carries the request id;
//! no message tells more than its client may know.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use platen_shared::wire;
use wasmtime_wasi_http::WasiBody;

/// Why the server answers instead of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// No component at this path.
    NotFound,
    /// No host in the request, or one that is none.
    NoHost,
    /// The body did not arrive.
    Stalled,
    /// Too many requests.
    Busy,
    /// The component took too long.
    Late,
    /// The component failed.
    Internal,
}

impl Problem {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Late | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::NoHost => "The request has no valid host",
            Self::Stalled => "The request body did not arrive in time",
            Self::Busy => "The server is busy, try again shortly",
            Self::Late | Self::Internal => "Internal server error",
        }
    }
}

/// The answer to a problem.
pub(super) fn of(problem: Problem, request_id: &str) -> Response<WasiBody> {
    let body = serde_json::json!({ "error": problem.message() }).to_string();
    let mut response = Response::new(whole(body.into()));
    *response.status_mut() = problem.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static(wire::REQUEST_ID), id);
    }
    match problem {
        Problem::Busy => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        // What is left of the body is still on its way.
        Problem::Stalled => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

/// The server runs.
pub(super) fn healthy() -> Response<WasiBody> {
    Response::new(whole(Bytes::from_static(b"OK")))
}

fn whole(bytes: Bytes) -> WasiBody {
    Full::new(bytes).map_err(Into::into).boxed_unsync()
}
