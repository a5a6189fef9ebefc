//! The farm over HTTP: its token, its routes, and how they are served.
//!
//! Invariant: the token is never empty or printed, and is compared in constant time. A job's body is read only for a caller
//! with the token; every job leaves one line in
//! the log, also when its caller disconnected. After the signal to end, the farm is not ready and accepts jobs for
//! [`NOTICE_TIME`] more, in which proxies notice it; every response then ends its connection, so that no job is sent over a
//! connection that is being closed.

mod access_log;
mod connection;
mod kept_files;

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    io, process,
    time::Duration,
};

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest as _, Request, State, rejection::BytesRejection},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE},
    },
    middleware::map_response_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::future::BoxFuture;
use platen_program::MetricsRegistry;
use platen_shared::{job::RenderJob, limits, refusal::Refusal, wire};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use access_log::AccessLog;
use connection::Connections;
use kept_files::{Incomplete, KeptFiles};

use crate::{error::Refused, farm::Farm};

/// A request of 32 MiB, its template of 5 MiB in which each byte is a JSON escape of six bytes, and files of 4 MiB in base64.
const MAX_BODY_BYTES: usize = 72 * 1024 * 1024;
/// Proxies check twice a second whether a farm is ready.
const NOTICE_TIME: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
struct App {
    farm: Farm,
    /// `None` in the process of the callers.
    token: Option<FarmToken>,
    kept_files: KeptFiles,
    /// Cancelled when the farm is about to end.
    ending: CancellationToken,
    id: HeaderValue,
}

impl App {
    /// Whether a request has the farm's token, if it needs one.
    fn accepts(&self, headers: &HeaderMap) -> bool {
        let has = |token: &FarmToken| {
            headers.get(AUTHORIZATION).is_some_and(|value| token.accepts(value.as_bytes()))
        };
        let is_accepted = self.token.as_ref().is_none_or(has);
        if !is_accepted {
            tracing::warn!("a request did not have the farm's token");
        }
        is_accepted
    }
}

impl Farm {
    /// The farm's HTTP API for callers in this process: as that of [`Farm::serve`], but without a token. A job whose request
    /// has a [`CancellationToken`] as an extension is cancelled by it, and its response says whether its page has run.
    pub fn router(&self) -> Router {
        self.router_until(None, CancellationToken::new())
    }

    fn router_until(&self, token: Option<FarmToken>, ending: CancellationToken) -> Router {
        // The keys of the hash are random.
        let id = RandomState::new().hash_one(process::id()).into();
        let app = App { farm: self.clone(), token, kept_files: KeptFiles::new(), ending, id };
        Router::new()
            .route(wire::JOBS_PATH, post(render).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)))
            .route(wire::FILL_PATH, post(fill).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)))
            .route("/healthz", get(|| async { "alive\n" }))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .layer(map_response_with_state(app.clone(), complete))
            .with_state(app)
    }

    /// Serves the farm's HTTP API, `POST /v1/jobs`, `POST /v1/fill` and `GET /metrics` with the bearer `token`, and `GET /healthz` and
    /// `GET /readyz` without, until `shutdown` is cancelled and for 3 s more, then does what [`Farm::shutdown`]
    /// does; new jobs are refused meanwhile.
    ///
    /// # Errors
    /// If serving on the listener fails.
    #[must_use]
    pub fn serve(
        &self,
        listener: TcpListener,
        token: FarmToken,
        shutdown: CancellationToken,
    ) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.serve_until(listener, token, shutdown))
    }

    async fn serve_until(
        &self,
        listener: TcpListener,
        token: FarmToken,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        if let Ok(address) = listener.local_addr() {
            self.forbid_port(address.port());
        }
        let ending = CancellationToken::new();
        let router = self.router_until(Some(token), ending.clone());
        let ended = async {
            shutdown.cancelled().await;
            tracing::info!("shutting down: not ready any more");
            ending.cancel();
            sleep(NOTICE_TIME).await;
            tracing::info!("shutting down: running jobs finish, new jobs are refused");
            self.drain().await
        };
        let served = serve(listener, router, ended).await;
        self.close().await;
        served
    }
}

/// Serves until `ended` has completed, and closes the connections, which may take until the time that it returns. Requests are
/// answered meanwhile.
async fn serve(
    listener: TcpListener,
    router: Router,
    ended: impl Future<Output = Instant>,
) -> io::Result<()> {
    let stop = CancellationToken::new();
    let server =
        axum::serve(Connections(listener), router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let server = server.into_future();
    tokio::pin!(server);
    let end = tokio::select! {
        result = &mut server => return result,
        end = ended => end,
    };
    stop.cancel();
    timeout_at(end, server).await.unwrap_or(Ok(()))
}

/// Adds the name of the farm, and ends the connection if the farm is about to end.
async fn complete(State(app): State<App>, mut response: Response) -> Response {
    response.headers_mut().insert(wire::FARM_ID, app.id);
    if app.ending.is_cancelled() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn readiness(State(app): State<App>) -> (StatusCode, &'static str) {
    if app.farm.is_ready() && !app.ending.is_cancelled() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    if !app.accepts(&headers) {
        return Refused(Refusal::Unauthorized).into_response();
    }
    ([(CONTENT_TYPE, MetricsRegistry::CONTENT_TYPE)], app.farm.metrics()).into_response()
}

async fn render(
    State(app): State<App>,
    cancelled: Option<Extension<CancellationToken>>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    if !app.accepts(&headers) {
        return Refused(Refusal::Unauthorized).into_response();
    }
    let mut line = AccessLog::new(&headers);
    let deadline = Instant::now() + time_left(&headers);
    let mut job = match timeout_at(deadline, read(request, &app)).await {
        Ok(Ok(job)) => job,
        Ok(Err(error)) => {
            tracing::warn!(request_id = line.progress.name, %error, "cannot read a job");
            return line.refused(Refusal::InvalidJob);
        }
        Err(_) => return line.refused(Refusal::Deadline.before_page_ran()),
    };
    line.describe(&job);
    match app.kept_files.complete(&mut job) {
        Ok(()) => {}
        Err(Incomplete::ContentsNeeded) => return line.contents_needed(),
        Err(Incomplete::WrongHash) => return line.refused(Refusal::InvalidJob),
    }
    let rendering = app.farm.render_observed(&job, None, deadline, &line.progress);
    let Extension(cancelled) = cancelled.unwrap_or_default();
    match cancelled.run_until_cancelled(rendering).await {
        Some(Ok(file)) => line.rendered(file),
        Some(Err(refusal)) => line.refused(refusal),
        None => line.cancelled(),
    }
}

/// The job with its template filled, for a preview.
async fn fill(State(app): State<App>, headers: HeaderMap, request: Request) -> Response {
    if !app.accepts(&headers) {
        return Refused(Refusal::Unauthorized).into_response();
    }
    let deadline = Instant::now() + time_left(&headers);
    let filled = match timeout_at(deadline, read(request, &app)).await {
        Ok(Ok(job)) => app.farm.fill(&job, deadline).await,
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot read a job");
            Err(Refusal::InvalidJob)
        }
        Err(_) => Err(Refusal::Deadline),
    };
    filled.map_or_else(|refusal| Refused(refusal).into_response(), |job| Json(job).into_response())
}

/// Why a body cannot be read. The text has the position of the error and nothing of the job's content.
#[derive(Debug, thiserror::Error)]
enum InvalidBody {
    #[error("the body did not arrive: {0}")]
    Body(#[from] BytesRejection),
    #[error("the body is not as expected: {:?} error at line {}, column {}", .0.classify(), .0.line(), .0.column())]
    Json(#[from] serde_json::Error),
}

async fn read(request: Request, app: &App) -> Result<RenderJob, InvalidBody> {
    Ok(serde_json::from_slice(&Bytes::from_request(request, app).await?)?)
}

/// The rest of the deadline, from the edge's header; never more than the whole deadline.
fn time_left(headers: &HeaderMap) -> Duration {
    let given = headers.get(wire::DEADLINE_MS).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    Duration::from_millis(given.unwrap_or(limits::RENDER_TIMEOUT_MS).min(limits::RENDER_TIMEOUT_MS))
}

/// The token is empty or white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the farm's token is empty; set PLATEN_FARM_TOKEN or --token-file to a long random text")]
pub struct EmptyToken;

/// The bearer token that a farm accepts.
#[derive(Debug, Clone)]
pub struct FarmToken(SecretString);

impl FarmToken {
    /// Creates a token, without white space around it, because files end with a newline.
    ///
    /// # Errors
    /// [`EmptyToken`].
    pub fn new(text: impl AsRef<str>) -> Result<Self, EmptyToken> {
        match text.as_ref().trim() {
            "" => Err(EmptyToken),
            token => Ok(Self(token.into())),
        }
    }

    /// Whether the value of an `authorization` header contains this token. The comparison's time reveals
    /// only the token's length.
    #[must_use]
    pub fn accepts(&self, authorization: &[u8]) -> bool {
        let Some((scheme, credentials)) = authorization.split_at_checked("Bearer ".len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"Bearer ") && credentials.ct_eq(self.0.expose_secret().as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_accepted() {
        let token = FarmToken::new(" s3cret\n").unwrap();
        for good in ["Bearer s3cret", "bearer s3cret"] {
            assert!(token.accepts(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cretx",
            "Bearer S3CRET",
            "Basic s3cret",
            "s3cret",
        ] {
            assert!(!token.accepts(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn an_empty_token_is_refused_and_a_token_is_not_printed() {
        assert_eq!(FarmToken::new(" \n").unwrap_err(), EmptyToken);
        assert!(!format!("{:?}", FarmToken::new("s3cret").unwrap()).contains("s3cret"));
    }
}
