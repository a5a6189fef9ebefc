//! What the server itself responds to: the page at `/`, the documents, the version, and whether it works.
//!
//! Invariant: none of it needs a component or a key, and none of it is about an account.

mod documents;
mod health;
mod markdown;

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderName, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use tokio_util::sync::CancellationToken;

use self::documents::Documents;
pub(crate) use self::health::Health;
use super::server_error::ServerError;

/// Whether the server responds to this path itself.
pub(super) fn has(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz" | "/version" | "/docs")
        || path.starts_with("/docs/")
        || path.starts_with("/.well-known/spin/")
}

/// The responses for those paths.
pub(super) fn router(health: Health, draining: CancellationToken) -> Router {
    let (documents, health) = (Arc::new(Documents::default()), Arc::new(health));
    let document = async move |uri: Uri| documents.get(uri.path()).ok_or(ServerError::NotFound);
    let readiness = async move || {
        let is_ready = !draining.is_cancelled() && health.is_ready().await;
        if is_ready { Ok(Content::new("text/plain", "ready\n")) } else { Err(ServerError::NotReady) }
    };
    let text = |text: &'static str| get(async move || Content::new("text/plain", text));
    let version = serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }).to_string();
    Router::new()
        .route("/", get(document.clone()))
        .route("/docs", get(document.clone()))
        .route("/docs/", get(async || Redirect::permanent("/docs")))
        .route("/docs/{*path}", get(document))
        .route("/healthz", text("alive\n"))
        .route("/readyz", get(readiness))
        .route("/version", get(async move || Content::new("application/json", version)))
        // Spin responds to this path itself.
        .route("/.well-known/spin/health", text("OK"))
        .method_not_allowed_fallback(async || ServerError::MethodNotAllowed)
        .fallback(async || ServerError::NotFound)
}

/// A body with its type.
struct Content {
    media_type: &'static str,
    policy: &'static str,
    body: Bytes,
}

impl Content {
    fn new(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { media_type, policy: documents::POLICY, body: body.into() }
    }
}

impl IntoResponse for Content {
    fn into_response(self) -> Response {
        let headers: [(HeaderName, &str); 4] = [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, "no-cache"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CONTENT_SECURITY_POLICY, self.policy),
        ];
        (headers, self.body).into_response()
    }
}
