//! Responses of the server itself.
//!
//! Invariant: an error is `{"error": "…", "code": "…"}`, must not be cached, and has the request id; its message has no
//! internal details.

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use platen_shared::{error_code::ErrorCode, wire};
use wasmtime_wasi_http::WasiBody;

/// Why the server responds instead of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerError {
    MalformedHead,
    /// No host, several or an invalid one.
    NoHost,
    /// Several lengths, an invalid one, or one besides a transfer coding. Servers that read them differently find
    /// different requests on one connection.
    AmbiguousLength,
    UnknownTransferCoding,
    RequestLineTooLong,
    HeadTooLarge,
    HeadTimedOut,
    /// No route matches the path.
    NotFound,
    /// A page of the server itself.
    MethodNotAllowed,
    /// Renders would fail, or the server is about to end.
    NotReady,
    BodyTimedOut,
    /// The body is not chunked as announced, or has trailers that are not.
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
            Self::MalformedHead | Self::NoHost | Self::AmbiguousLength | Self::InvalidBody => {
                ErrorCode::InvalidRequest
            }
            Self::UnknownTransferCoding => ErrorCode::UnsupportedTransferCoding,
            Self::RequestLineTooLong => ErrorCode::RequestLineTooLong,
            Self::HeadTooLarge => ErrorCode::HeadTooLarge,
            Self::HeadTimedOut | Self::BodyTimedOut => ErrorCode::RequestTimeout,
            Self::NotFound => ErrorCode::NotFound,
            Self::MethodNotAllowed => ErrorCode::MethodNotAllowed,
            Self::TooManyRequests | Self::NoInstance | Self::NotReady => ErrorCode::ServiceBusy,
            Self::ComponentTimedOut | Self::ComponentFailed => ErrorCode::InternalError,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::MalformedHead => "The request head is malformed",
            Self::NoHost => "The request has no valid host",
            Self::AmbiguousLength => "The length of the request body is invalid or ambiguous",
            Self::UnknownTransferCoding => "The only transfer coding that is supported is chunked",
            Self::RequestLineTooLong => "The request line must be at most 8192 bytes",
            Self::HeadTooLarge => "The request head must be at most 65536 bytes and 100 headers",
            Self::HeadTimedOut => "The request head did not arrive in time",
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

    fn body(self) -> String {
        serde_json::json!({ "error": self.message(), "code": self.code().as_str() }).to_string()
    }

    /// Whether a retry may succeed soon.
    fn is_busy(self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Whether the rest of the request may still arrive.
    fn closes_connection(self) -> bool {
        matches!(self, Self::BodyTimedOut | Self::InvalidBody)
    }
}

pub(super) fn response(error: ServerError, request_id: &str) -> Response<WasiBody> {
    let mut response = Response::new(buffered(error.body().into()));
    *response.status_mut() = error.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static(wire::REQUEST_ID), id);
    }
    if error.is_busy() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if error == ServerError::MethodNotAllowed {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if error.closes_connection() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The response to a head that hyper does not get, as it is sent. It is the last one of its connection.
pub(super) fn response_without_request(error: ServerError, request_id: &str) -> Bytes {
    let (status, body) = (error.status(), error.body());
    let retry_after = if error.is_busy() { "retry-after: 1\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n{}: {request_id}\r\n\
         content-length: {}\r\nconnection: close\r\n{retry_after}date: {}\r\n\r\n{body}",
        wire::REQUEST_ID,
        body.len(),
        httpdate::fmt_http_date(SystemTime::now()),
    )
    .into()
}

pub(super) fn buffered(bytes: Bytes) -> WasiBody {
    Full::new(bytes).map_err(Into::into).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_limits() {
        let message = |error: ServerError| error.body();
        let line = super::super::head::MAX_REQUEST_LINE_BYTES.to_string();
        assert!(message(ServerError::RequestLineTooLong).contains(&line));
        let head = super::super::head::MAX_HEAD_BYTES.to_string();
        assert!(message(ServerError::HeadTooLarge).contains(&head));
    }

    #[test]
    fn a_response_without_a_request_is_a_complete_response() {
        let text = response_without_request(ServerError::TooManyRequests, "1");
        let text = std::str::from_utf8(&text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        for header in [
            "retry-after: 1",
            "connection: close",
            "x-request-id: 1",
            &format!("content-length: {}", body.len()),
        ] {
            assert!(head.lines().any(|line| line == header), "{header} in {head}");
        }
        assert_eq!(body, r#"{"error":"The server is busy, try again shortly","code":"service_busy"}"#);
    }
}
