//! The farm over HTTP: its routes, and how they are served.
//!
//! Invariant: a job's body is read only for a caller with the token; every job leaves one line in
//! the log, also when its caller disconnected. After the signal to end, the farm is not ready and accepts jobs for
//! [`NOTICE_TIME`] more, in which proxies notice it; every response then ends its connection, so that no job is sent over a
//! connection that is being closed.

mod access_log;
mod connection;

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    io, process,
    time::Duration,
};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, FromRequest as _, FromRequestParts, Request, State, rejection::BytesRejection,
    },
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE},
        request::Parts,
    },
    middleware::map_response_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use platen_program::MetricsRegistry;
use platen_shared::{job::RenderJob, limits, refusal::Refusal, wire};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use access_log::AccessLog;
use connection::Connections;

use crate::{Farm, FarmToken, error::Refused};

/// 5 MiB of HTML in which each byte is a JSON escape of six bytes are 30 MiB.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// Proxies check twice a second whether a farm is ready.
const NOTICE_TIME: Duration = Duration::from_secs(3);
/// How long open connections may take to end once all jobs have ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
struct App {
    farm: Farm,
    /// `None` in the process of the callers.
    token: Option<FarmToken>,
    /// Cancelled when the farm is about to end.
    ending: CancellationToken,
    /// The value of [`wire::FARM_ID`].
    id: HeaderValue,
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
        let app = App { farm: self.clone(), token, ending, id };
        Router::new()
            .route(wire::JOBS_PATH, post(render).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)))
            .route("/healthz", get(|| async { "alive\n" }))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .layer(map_response_with_state(app.clone(), complete))
            .with_state(app)
    }

    /// Serves the farm's HTTP API, `POST /v1/jobs` with the bearer `token`, and `GET /healthz`, `GET /readyz` and
    /// `GET /metrics` without, until `shutdown` completes and for 3 s more, then does what [`Farm::shutdown`]
    /// does; new jobs are refused meanwhile.
    ///
    /// # Errors
    /// If serving on the listener fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        token: FarmToken,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        if let Ok(address) = listener.local_addr() {
            self.forbid_port(address.port());
        }
        let ending = CancellationToken::new();
        let router = self.router_until(Some(token), ending.clone());
        let ended = async {
            shutdown.await;
            tracing::info!("shutting down: not ready any more");
            ending.cancel();
            sleep(NOTICE_TIME).await;
            tracing::info!("shutting down: running jobs finish, new jobs are refused");
            self.drain().await;
        };
        let served = serve(listener, router, ended).await;
        self.shutdown().await;
        served
    }
}

/// Serves until `ended` has completed, and closes the connections. Requests are answered meanwhile.
async fn serve(listener: TcpListener, router: Router, ended: impl Future<Output = ()>) -> io::Result<()> {
    let stop = CancellationToken::new();
    let server =
        axum::serve(Connections(listener), router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let server = server.into_future();
    tokio::pin!(server);
    tokio::select! {
        result = &mut server => return result,
        () = ended => {}
    }
    stop.cancel();
    tokio::time::timeout(CLOSE_TIMEOUT, server).await.unwrap_or(Ok(()))
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

async fn metrics(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, MetricsRegistry::CONTENT_TYPE)], app.farm.metrics())
}

/// Proof that the caller has the token.
struct Authorized;

impl FromRequestParts<App> for Authorized {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        match (&app.token, parts.headers.get(AUTHORIZATION)) {
            (None, _) => Ok(Self),
            (Some(token), Some(value)) if token.accepts(value.as_bytes()) => Ok(Self),
            _ => {
                tracing::warn!("a request did not have the farm's token");
                Err(Refusal::Unauthorized.into())
            }
        }
    }
}

async fn render(
    _: Authorized,
    State(app): State<App>,
    cancelled: Option<Extension<CancellationToken>>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let mut line = AccessLog::new(&headers);
    let deadline = Instant::now() + time_left(&headers);
    let job = match timeout_at(deadline, read(request, &app)).await {
        Ok(Ok(job)) => job,
        Ok(Err(error)) => {
            tracing::warn!(request_id = line.request_id, %error, "cannot read a job");
            return line.refused(Refusal::InvalidJob.into());
        }
        Err(_) => return line.refused(Refusal::Deadline.before_page_ran().into()),
    };
    line.describe(&job);
    let rendering = app.farm.render_observed(&line.request_id, &job, deadline, &line.progress);
    let Extension(cancelled) = cancelled.unwrap_or_default();
    match cancelled.run_until_cancelled(rendering).await {
        Some(Ok(file)) => line.rendered(file),
        Some(Err(refused)) => line.refused(refused),
        None => line.cancelled(),
    }
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
