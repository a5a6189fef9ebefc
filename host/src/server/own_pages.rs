//! What the server itself responds to: the page at `/`, the documents, the version, and whether it works.
//!
//! Invariant: none of it needs a component or a key, and none of it is about an account.

mod documents;
mod health;
mod markdown;

use http::{HeaderValue, Method, Response, StatusCode, header};
use wasmtime_wasi_http::WasiBody;

use self::documents::Documents;
pub(crate) use self::health::Health;
use super::{
    connections::Connection,
    server_error::{ServerError, buffered},
};

/// The paths of the server.
pub(super) struct OwnPages {
    documents: Documents,
    health: Health,
}

/// Spin responds to these paths itself.
const WELL_KNOWN: &str = "/.well-known/spin/";
const HEALTH: &str = "/.well-known/spin/health";

/// Whether the server responds to this path itself.
pub(super) fn has(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz" | "/version" | "/docs")
        || path.starts_with("/docs/")
        || path.starts_with(WELL_KNOWN)
}

/// A body with its type.
struct Content {
    media_type: &'static str,
    body: bytes::Bytes,
}

impl Content {
    fn new(media_type: &'static str, body: impl Into<bytes::Bytes>) -> Self {
        Self { media_type, body: body.into() }
    }
}

impl OwnPages {
    pub(super) fn new(health: Health) -> Self {
        Self { documents: Documents::default(), health }
    }

    /// The response for one of those paths; for all others [`ServerError::NotFound`].
    pub(super) async fn respond(
        &self,
        method: &Method,
        path: &str,
        connection: &Connection,
    ) -> Result<Response<WasiBody>, ServerError> {
        if !has(path) {
            return Err(ServerError::NotFound);
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(ServerError::MethodNotAllowed);
        }
        let content = match path {
            HEALTH => Content::new("text/plain", "OK"),
            "/healthz" => Content::new("text/plain", "alive\n"),
            "/readyz" if connection.draining_since().is_some() || !self.health.is_ready().await => {
                return Err(ServerError::NotReady);
            }
            "/readyz" => Content::new("text/plain", "ready\n"),
            "/version" => {
                let version = serde_json::json!({ "version": env!("CARGO_PKG_VERSION") });
                Content::new("application/json", version.to_string())
            }
            "/docs/" => return Ok(redirect("/docs")),
            _ => self.documents.get(path).ok_or(ServerError::NotFound)?,
        };
        let mut response = Response::new(buffered(content.body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content.media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(documents::policy(path)));
        Ok(response)
    }
}

fn redirect(to: &'static str) -> Response<WasiBody> {
    let mut response = Response::new(buffered(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(to));
    response
}
