//! What the server itself responds to: the page at `/`, the documents, the version, and whether it works.
//!
//! Invariant: none of it needs a component or a key, and none of it is about an account.

mod documents;
mod highlight;
mod markdown;
mod reference;
mod search;

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
};
use platen_farm::Readiness;
use platen_shared::{farm_address::FarmAddress, wire};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{limits::CHECK_TIMEOUT, server_error::ServerError};
use crate::db::Database;

/// Whether the server responds to this path itself.
pub(super) fn has(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz" | "/version" | "/docs" | "/llms.txt" | documents::ICON)
        || path == "/favicon.ico"
        || path.starts_with("/docs/")
        || path.starts_with("/.well-known/spin/")
}

/// The response for such a path.
pub(super) async fn respond(method: &Method, uri: &Uri, health: &Health, is_draining: bool) -> Response {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return ServerError::MethodNotAllowed.into_response();
    }
    let text = |text: &'static str| Content::new("text/plain", text).into_response();
    match uri.path() {
        // Spin responds to this path itself.
        "/.well-known/spin/health" => text("OK"),
        "/healthz" => text("alive\n"),
        "/readyz" if !is_draining && health.is_ready().await => text("ready\n"),
        "/readyz" => ServerError::NotReady.into_response(),
        "/version" => {
            let version = serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }).to_string();
            Content::new("application/json", version).into_response()
        }
        "/docs/" => Redirect::permanent("/docs").into_response(),
        "/favicon.ico" => Redirect::permanent(documents::ICON).into_response(),
        documents::SEARCH => documents::found(uri.query().unwrap_or_default()).into_response(),
        path => documents::get(path).ok_or(ServerError::NotFound).into_response(),
    }
}

/// Whether the client of a request for none of the API and the dashboard reads pages rather than JSON: a browser does.
pub(super) fn reads_page(path: &str, headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    !["/v1", "/dashboard"].iter().any(|prefix| path.starts_with(prefix))
        && accepted.is_some_and(|accepted| accepted.to_ascii_lowercase().contains("text/html"))
}

/// The page for a path that does not exist.
pub(super) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, documents::not_found()).into_response()
}

struct Content {
    media_type: &'static str,
    body: Bytes,
}

impl Content {
    fn new(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { media_type, body: body.into() }
    }
}

impl IntoResponse for Content {
    fn into_response(self) -> Response {
        let headers: [(HeaderName, &str); 4] = [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, "no-cache"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CONTENT_SECURITY_POLICY, documents::POLICY),
        ];
        (headers, self.body).into_response()
    }
}

/// What a render needs, and whether it is there.
pub(crate) struct Health {
    database: Database,
    /// The farm of this process.
    own_farm: Option<Readiness>,
    /// Another one.
    farm: Option<FarmAddress>,
    http: reqwest::Client,
    /// When database and farm were asked, and whether they are ready.
    checked: Mutex<Option<(Instant, bool)>>,
}

impl Health {
    pub(crate) fn new(database: Database, farm: Option<FarmAddress>, own_farm: Option<Readiness>) -> Self {
        let http = platen_program::http_client().build().expect("a client without options");
        Self { database, own_farm, farm, http, checked: Mutex::default() }
    }

    /// Whether the database can be written and the farm accepts jobs.
    async fn is_ready(&self) -> bool {
        if !self.own_farm.as_ref().is_none_or(Readiness::is_ready) {
            return false;
        }
        let mut checked = self.checked.lock().await;
        if let Some((at, is_ready)) = *checked
            && at.elapsed() < CHECK_TIMEOUT
        {
            return is_ready;
        }
        let asked =
            timeout(CHECK_TIMEOUT, async { tokio::join!(self.database_is_writable(), self.farm_is_ready()) });
        let is_ready = asked.await.is_ok_and(|(database, farm)| database && farm);
        *checked = Some((Instant::now(), is_ready));
        is_ready
    }

    /// A response without the header of a farm is that of another server.
    async fn farm_is_ready(&self) -> bool {
        let Some(farm) = &self.farm else { return true };
        let response = self.http.get(format!("{farm}/readyz")).send().await;
        response.is_ok_and(|response| {
            response.status() == StatusCode::OK && response.headers().contains_key(wire::FARM_ID)
        })
    }

    async fn database_is_writable(&self) -> bool {
        // Changes nothing, but needs the lock of a writer and a page of the table: SQLite may hold the page with the schema
        // in memory when the file is damaged.
        self.database.query("UPDATE accounts SET quota = quota WHERE rowid = -1", Vec::new()).await.is_ok()
    }
}
