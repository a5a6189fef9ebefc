//! The farm over HTTP: its routes, and how they are served.
//!
//! Invariant: a job's body is read only for a caller with the token; every job leaves one line in
//! the log, also when its caller disconnected; a job that is cancelled by its id is answered at once,
//! with whether its page had begun to run. While the farm drains, every response ends its connection, so that no
//! job is sent over a connection that is being closed.

mod access_log;
mod connection;
mod load;
mod slots;

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    io, process,
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, FromRequest as _, FromRequestParts, Path, Request, State, rejection::BytesRejection,
    },
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE},
        request::Parts,
    },
    middleware::map_response_with_state,
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use platen_shared::{job::RenderJob, limits, refusal::Refusal, wire};
use serde::de::DeserializeOwned;
use tokio::{net::TcpListener, time::timeout_at};
use tokio_util::sync::CancellationToken;

use access_log::AccessLog;
use connection::Connections;

use crate::{
    Farm, FarmToken, MetricsRegistry,
    cancellation::{RunningJob, RunningJobs},
    error::Refused,
};

/// 5 MiB of HTML in which each byte is a JSON escape of six bytes are 30 MiB.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// How long open connections may take to end once all jobs have ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
struct App {
    farm: Farm,
    token: FarmToken,
    running: RunningJobs,
    last_statement: load::LastStatement,
    kept_slots: slots::KeptSlots,
    /// The value of [`wire::FARM_ID`], if the farm has a process of its own.
    id: Option<HeaderValue>,
}

impl Farm {
    /// The farm's HTTP API: `POST /v1/jobs`, `POST /v1/slots`, `DELETE` of both with `/{id}`, and `GET /v1/load` with
    /// the bearer `token`, and `GET /healthz`, `GET /readyz` and `GET /metrics` without.
    pub fn router(&self, token: FarmToken) -> Router {
        self.router_of(token, load::LastStatement::default(), None)
    }

    fn router_of(
        &self,
        token: FarmToken,
        last_statement: load::LastStatement,
        id: Option<HeaderValue>,
    ) -> Router {
        let app = App {
            farm: self.clone(),
            token,
            running: RunningJobs::default(),
            last_statement,
            kept_slots: slots::KeptSlots::default(),
            id,
        };
        Router::new()
            .route(wire::JOBS_PATH, post(render).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)))
            .route(&format!("{}/{{id}}", wire::JOBS_PATH), delete(cancel))
            .route(wire::SLOTS_PATH, post(slots::wait))
            .route(&format!("{}/{{id}}", wire::SLOTS_PATH), delete(cancel))
            .route(wire::LOAD_PATH, get(load::load))
            .route("/healthz", get(|| async { "alive\n" }))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .layer(map_response_with_state(app.clone(), load::end_connection_while_draining))
            .layer(map_response_with_state(app.clone(), slots::identify))
            .with_state(app)
    }

    /// Serves [`Farm::router`] until `shutdown` completes, then does what [`Farm::shutdown`] does; new jobs
    /// are refused meanwhile.
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
        let last_statement = load::LastStatement::default();
        // The keys of the hash are random.
        let id = RandomState::new().hash_one(process::id());
        let router = self.router_of(token, last_statement.clone(), Some(id.into()));
        let drain = async {
            self.drain().await;
            last_statement.linger().await;
        };
        let served = serve(listener, router, shutdown, drain).await;
        self.shutdown().await;
        served
    }
}

/// Serves until `shutdown` and then `drain` have completed, and closes the connections.
async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    drain: impl Future<Output = ()>,
) -> io::Result<()> {
    let stop = CancellationToken::new();
    let server =
        axum::serve(Connections(listener), router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let server = server.into_future();
    tokio::pin!(server);
    let drained = async {
        shutdown.await;
        tracing::info!("shutting down: running jobs finish, new jobs are refused");
        // Requests are still answered meanwhile, so that callers get a refusal and can use another farm.
        drain.await;
    };
    tokio::select! {
        result = &mut server => return result,
        () = drained => {}
    }
    stop.cancel();
    tokio::time::timeout(CLOSE_TIMEOUT, server).await.unwrap_or(Ok(()))
}

async fn readiness(State(app): State<App>) -> (StatusCode, &'static str) {
    if app.farm.is_ready() {
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
        match parts.headers.get(AUTHORIZATION) {
            Some(value) if app.token.accepts(value.as_bytes()) => Ok(Self),
            _ => {
                tracing::warn!("a request did not have the farm's token");
                Err(Refusal::Unauthorized.into())
            }
        }
    }
}

/// A job is registered when its head has arrived, so that it can be cancelled while its body arrives.
impl FromRequestParts<App> for RunningJob {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        Ok(app.running.begin(job_id(&parts.headers)))
    }
}

fn job_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(wire::JOB_ID)?.to_str().ok().filter(|id| wire::is_request_id(id))
}

/// The request that brought the job is answered as well, if the job is still running.
async fn cancel(_: Authorized, State(app): State<App>, Path(id): Path<String>) -> StatusCode {
    if !wire::is_request_id(&id) {
        return StatusCode::NOT_FOUND;
    }
    app.running.cancel(&id);
    StatusCode::NO_CONTENT
}

async fn render(
    _: Authorized,
    running: RunningJob,
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let mut line = AccessLog::new(&headers);
    let deadline = running.arrived + time_left(&headers);
    let slot = job_id(&headers).and_then(|id| app.kept_slots.take(id));
    let job: RenderJob = match timeout_at(deadline, read(request, &app)).await {
        Ok(Ok(job)) => job,
        Ok(Err(error)) => {
            tracing::warn!(request_id = line.request_id, %error, "cannot read a job");
            return line.refused(Refusal::InvalidJob.into());
        }
        Err(_) => return line.refused(Refusal::Deadline.before_page_ran().into()),
    };
    line.describe(&job);
    if slot.is_none()
        && let Some(refusal) = load::refuse_to_queue(&app, &headers)
    {
        return line.refused(refusal.into());
    }
    let rendering = app.farm.render_observed(&line.request_id, &job, slot, deadline, &line.progress);
    match running.run(rendering).await {
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

async fn read<T: DeserializeOwned>(request: Request, app: &App) -> Result<T, InvalidBody> {
    Ok(serde_json::from_slice(&Bytes::from_request(request, app).await?)?)
}

/// The rest of the deadline, from the edge's header; never more than the whole deadline.
fn time_left(headers: &HeaderMap) -> Duration {
    let given = headers.get(wire::DEADLINE_MS).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    Duration::from_millis(given.unwrap_or(limits::RENDER_TIMEOUT_MS).min(limits::RENDER_TIMEOUT_MS))
}
