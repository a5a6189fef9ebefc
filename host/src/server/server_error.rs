//! Errors of the server itself.
//!
//! Invariant: an error is `{"error": "…", "code": "…"}` and must not be cached; its message has no internal details.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use platen_shared::error_code::ErrorCode;

/// Why the server responds instead of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerError {
    /// No host, several or an invalid one.
    NoHost,
    /// Servers that read codings differently find different requests on one connection.
    UnknownTransferCoding,
    /// No route matches the path.
    NotFound,
    /// A page of the server itself.
    MethodNotAllowed,
    /// Renders would fail, or the server is about to end.
    NotReady,
    BodyTimedOut,
    /// The body is not chunked as announced, or has ended early.
    InvalidBody,
    TooManyRequests,
    /// No instance of the component could be created, such as for lack of memory. The component has not got the request.
    NoInstance,
    ComponentTimedOut,
    ComponentFailed,
}

impl ServerError {
    fn code(self) -> ErrorCode {
        match self {
            Self::NoHost | Self::InvalidBody => ErrorCode::InvalidRequest,
            Self::UnknownTransferCoding => ErrorCode::UnsupportedTransferCoding,
            Self::BodyTimedOut => ErrorCode::RequestTimeout,
            Self::NotFound => ErrorCode::NotFound,
            Self::MethodNotAllowed => ErrorCode::MethodNotAllowed,
            Self::TooManyRequests | Self::NoInstance | Self::NotReady => ErrorCode::ServiceBusy,
            Self::ComponentTimedOut | Self::ComponentFailed => ErrorCode::InternalError,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::NoHost => "The request has no valid host",
            Self::UnknownTransferCoding => "The only transfer coding that is supported is chunked",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::NotReady => "Not ready",
            Self::BodyTimedOut => "The request body did not arrive in time",
            Self::InvalidBody => "The request body is incomplete or malformed",
            Self::TooManyRequests | Self::NoInstance => "The server is busy, try again shortly",
            Self::ComponentTimedOut | Self::ComponentFailed => "Internal server error",
        }
    }

    pub(super) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn body(self) -> String {
        serde_json::json!({ "error": self.message(), "code": self.code().as_str() }).to_string()
    }
}

impl IntoResponse for ServerError {
    fn into_response(self) -> Response {
        let json = HeaderValue::from_static("application/json");
        let headers =
            [(header::CONTENT_TYPE, json), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
        let mut response = (self.status(), headers, self.body()).into_response();
        let (name, value) = match self {
            Self::MethodNotAllowed => (header::ALLOW, "GET, HEAD"),
            _ if self.status() == StatusCode::SERVICE_UNAVAILABLE => (header::RETRY_AFTER, "1"),
            _ => return response,
        };
        response.headers_mut().insert(name, HeaderValue::from_static(value));
        response
    }
}
