//! The HTTP server in front of the components.
//!
//! Invariant: whatever the clients do, connections, requests and the bytes of their bodies are
//! bounded, none of them waits for ever, and an answer of the server itself is `{"error": "…"}`.
//! Left to others: everything a request means (components).

mod answer;
mod body;
mod connection;
mod exposition;
mod gate;
mod router;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header, uri};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use platen_shared::{limits, wire};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use uuid::Uuid;
use wasmtime_wasi_http::WasiBody;

use crate::{
    manifest::HttpTrigger,
    metrics::Metrics,
    runtime::{ComponentError, Handler, HangUp, Lane},
};
use answer::Problem;
use body::{Answering, Upload};
use gate::Gate;
use router::{Route, Router};

pub(crate) use exposition::serve_metrics;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 4096;
/// Time for a request's head, and for the next one on a kept connection.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// Bodies over this have an instance of their own, and count against [`Gate`]'s memory.
const SMALL_BODY_BYTES: u64 = 1024 * 1024;
/// Time for running requests to end after a signal: one render and its way back.
const DRAIN_WITHIN: Duration = Duration::from_secs(40);

/// Where Spin answers for itself.
const WELL_KNOWN: &str = "/.well-known/spin/";

/// The server.
pub(crate) struct Server {
    router: Router,
    gate: Gate,
    metrics: Arc<Metrics>,
}

impl Server {
    /// A server of these routes; every component they name is in `handlers`.
    pub(crate) fn new(
        routes: &[HttpTrigger],
        handlers: &BTreeMap<String, Handler>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { router: Router::new(routes, handlers), gate: Gate::default(), metrics }
    }

    /// Serves until `stop` completes, then finishes what runs and returns.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut stop = std::pin::pin!(stop);
        loop {
            let accept = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = &mut stop => break,
                accepted = accept => accepted,
            };
            match accepted {
                Ok((stream, client)) => {
                    let serving = graceful.watch(Arc::clone(&self).connection(stream, client));
                    tokio::spawn(async move {
                        let _place = place;
                        if let Err(error) = serving.await {
                            tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended");
                        }
                    });
                }
                Err(error) => {
                    // Out of file descriptors, as a rule: others will be closed presently.
                    tracing::warn!(error = &error as &dyn std::error::Error, "a connection was not accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        if timeout(DRAIN_WITHIN, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests still running are broken off");
        }
    }

    fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        client: SocketAddr,
    ) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
        // Small answers leave at once.
        let _ = stream.set_nodelay(true);
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(
                TokioIo::new(connection::WriteGuarded::new(stream)),
                service_fn(move |request| Arc::clone(&self).answer(request, client)),
            )
    }

    /// Answers one request.
    async fn answer(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        client: SocketAddr,
    ) -> Result<Response<Answering>, std::convert::Infallible> {
        let began = Instant::now();
        let id = request_id(&mut request);
        let method = request.method().clone();
        let answering = Answering::begin(Arc::clone(&self.metrics));
        let hang_up = answering.hang_up();
        let (response, permits) = match self.route(request, client, hang_up).await {
            // The component writes a line of its own.
            Ok((response, permits)) => (response, Some(permits)),
            Err(problem) => {
                let status = problem.status().as_u16();
                let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                tracing::info!(request_id = id, %method, status, ms, ?problem, "answered by the server");
                (answer::of(problem, &id), None)
            }
        };
        self.metrics.answered(response.status());
        let sent = method != Method::HEAD;
        Ok(response.map(|body| answering.with(body, sent, permits)))
    }

    async fn route(
        &self,
        mut request: Request<Incoming>,
        client: SocketAddr,
        hang_up: HangUp,
    ) -> Result<(Response<WasiBody>, gate::Permits), Problem> {
        let path = request.uri().path();
        if let Some(own) = path.strip_prefix(WELL_KNOWN) {
            let permits = gate::Permits::none();
            return if own == "health" { Ok((answer::healthy(), permits)) } else { Err(Problem::NotFound) };
        }
        let route = self.router.find(path).ok_or(Problem::NotFound)?;
        let handler = route.handler().clone();
        prepare(&mut request, route, client)?;
        let size = body_size(&request);
        let lane = if size > SMALL_BODY_BYTES { Lane::Alone } else { Lane::Shared };
        let large = if lane == Lane::Alone { size } else { 0 };
        let permits = self.gate.enter(large).await.inspect_err(|_| self.metrics.turned_away())?;
        let upload = Upload::new();
        let request = request.map(|body| upload.guard(body).boxed_unsync());
        match handler.handle(request, lane, hang_up).await {
            // Whatever the component made of it: the client did not send what it announced.
            _ if upload.stalled() => Err(Problem::Stalled),
            Ok(response) => Ok((response, permits)),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "no answer from the component");
                Err(match error {
                    ComponentError::Late => Problem::Late,
                    ComponentError::Failed(_) => Problem::Internal,
                })
            }
        }
    }
}

/// Takes over the client's request id if it can stand in a log, and makes one otherwise; either
/// way the component finds it in the request.
fn request_id(request: &mut Request<Incoming>) -> String {
    let given = request.headers().get(wire::REQUEST_ID).and_then(|value| value.to_str().ok());
    match given {
        Some(id) if wire::is_request_id(id) => id.to_owned(),
        _ => {
            let id = Uuid::now_v7().to_string();
            let value = HeaderValue::from_str(&id).expect("a UUID is ASCII");
            request.headers_mut().insert(HeaderName::from_static(wire::REQUEST_ID), value);
            id
        }
    }
}

/// Bytes of the body as announced; one without a length may become as large as any.
fn body_size(request: &Request<Incoming>) -> u64 {
    use hyper::body::Body as _;
    let most = limits::MAX_BODY_BYTES as u64;
    request.body().size_hint().upper().unwrap_or(most).min(most)
}

/// Makes of a request what a component finds on Spin: the whole URL, and Spin's headers in place
/// of any the client sent.
fn prepare(request: &mut Request<Incoming>, route: &Route, client: SocketAddr) -> Result<(), Problem> {
    let authority = match request.headers().get(header::HOST) {
        Some(host) => uri::Authority::try_from(host.as_bytes()).map_err(|_| Problem::NoHost)?,
        None => request.uri().authority().cloned().ok_or(Problem::NoHost)?,
    };
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    let path = parts.path_and_query.get_or_insert_with(|| uri::PathAndQuery::from_static("/"));
    let spin = [
        ("spin-full-url", format!("http://{authority}{path}")),
        ("spin-path-info", route.rest_of(path.path()).to_owned()),
        ("spin-matched-route", route.pattern().to_owned()),
        ("spin-component-route", route.prefix().to_owned()),
        ("spin-raw-component-route", route.pattern().to_owned()),
        ("spin-base-path", "/".to_owned()),
        ("spin-client-addr", client.to_string()),
    ];
    parts.scheme = Some(uri::Scheme::HTTP);
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Problem::NoHost)?;
    request.headers_mut().remove(header::CONNECTION);
    for (name, value) in spin {
        let value = HeaderValue::try_from(value).map_err(|_| Problem::NoHost)?;
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
    Ok(())
}
