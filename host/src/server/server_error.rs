//! Errors of the server itself.
//!
//! Invariant: an error is `{"error": "…", "code": "…"}` and must not be cached; its message has no internal details.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use platen_shared::reason::ErrorCode;

macro_rules! server_errors {
    ($($(#[doc = $doc:literal])* $error:ident $code:ident $message:literal)*) => {
        /// Why the server responds instead of a component.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum ServerError {
            $($(#[doc = $doc])* $error,)*
        }

        impl ServerError {
            /// Its public code and message.
            fn row(self) -> (ErrorCode, &'static str) {
                match self { $(Self::$error => (ErrorCode::$code, $message),)* }
            }
        }
    };
}

// Name, public code, message.
server_errors! {
    /// No host, several or an invalid one.
    NoHost InvalidRequest "The request has no valid host"
    /// Servers that read codings differently find different requests on one connection.
    UnknownTransferCoding UnsupportedTransferCoding "The only transfer coding that is supported is chunked"
    /// No route matches the path.
    NotFound NotFound "Not found"
    /// A page of the server itself.
    MethodNotAllowed MethodNotAllowed "Method not allowed"
    /// Renders would fail, or the server is about to end.
    NotReady ServiceBusy "Not ready"
    BodyTimedOut RequestTimeout "The request body did not arrive in time"
    /// The body is not chunked as announced, or has ended early.
    InvalidBody InvalidRequest "The request body is incomplete or malformed"
    TooManyRequests ServiceBusy "The server is busy, try again shortly"
    /// No instance of the component could be created, such as for lack of memory. The component has not got the request.
    NoInstance ServiceBusy "The server is busy, try again shortly"
    ComponentTimedOut InternalError "Internal server error"
    ComponentFailed InternalError "Internal server error"
}

impl ServerError {
    pub(super) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn body(self) -> String {
        let (code, message) = self.row();
        serde_json::json!({ "error": message, "code": code.as_str() }).to_string()
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
