//! The HTTP server that passes requests to the components.
//!
//! Invariant: connections, requests and the bytes of their bodies are limited, and each of them has a
//! timeout. An error of the server itself is `{"error": "…"}`.

mod acceptor;
mod buffered_body;
mod client_address;
mod client_socket;
mod client_stream;
mod concurrency_limit;
mod connections;
mod error_pace;
mod flows;
mod framing;
mod head;
mod metrics_endpoint;
mod own_pages;
mod pace;
mod partial_bodies;
mod request_body;
mod request_head;
mod request_reader;
mod response_body;
mod router;
mod server_error;
mod shared_budget;
mod unsent_responses;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use platen_farm::{
    RepeatedWarning,
    startup::StopSignals,
    telemetry::{Parent, Span},
};
use platen_shared::wire;
use tokio::net::TcpListener;
use wasmtime_wasi_http::WasiBody;

use crate::{
    manifest::HttpTrigger,
    metrics::Metrics,
    runtime::{ClientDisconnect, ComponentError, Handler, InstanceDrain, Isolation, RequestContext},
};
use acceptor::Acceptor;
use client_socket::ClientSocket;
use client_stream::ClientStream;
use concurrency_limit::ConcurrencyLimit;
use connections::{Connection, Connections, OpenConnection};
use error_pace::ErrorPace;
use flows::{Candidates, Flows};
use own_pages::OwnPages;
use request_body::{BodyLimits, Received, Reception, Upload};
use response_body::ResponseBody;
use router::{Route, Router};
use server_error::ServerError;
use unsent_responses::UnsentResponses;

pub(crate) use metrics_endpoint::serve_metrics;
pub(crate) use own_pages::Health;

/// The label of requests that match no route.
const NO_ROUTE: &str = "none";

/// What instances have to do after the last response is usually one statement. A job whose connection was aborted has
/// two seconds to be cancelled before.
const MIN_INSTANCE_DRAIN_TIME: Duration = Duration::from_secs(3);
const MAX_INSTANCE_DRAIN_TIME: Duration = Duration::from_secs(10);

pub(crate) struct Server {
    router: Router,
    own_pages: OwnPages,
    concurrency_limit: Arc<ConcurrencyLimit>,
    body_limits: Arc<BodyLimits>,
    connections: Arc<Connections>,
    unsent_responses: Arc<UnsentResponses>,
    flows: Flows,
    error_pace: ErrorPace,
    instances: InstanceDrain,
    drain_timeout: Duration,
    component_errors: RepeatedWarning,
    metrics: Arc<Metrics>,
}

/// Limits that an operator sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerLimits {
    pub(crate) max_connections: usize,
    /// `None`: addresses are not limited.
    pub(crate) max_connections_per_address: Option<usize>,
    /// For requests in progress, after a signal.
    pub(crate) drain_timeout: Duration,
}

impl Server {
    /// `handlers` has every component that the routes name.
    pub(crate) fn new(
        routes: &[HttpTrigger],
        handlers: &BTreeMap<String, Handler>,
        instances: InstanceDrain,
        limits: ServerLimits,
        health: Health,
        metrics: Arc<Metrics>,
    ) -> Self {
        let ServerLimits { max_connections, max_connections_per_address, drain_timeout } = limits;
        Self {
            router: Router::new(routes, handlers),
            own_pages: OwnPages::new(health),
            concurrency_limit: Arc::default(),
            body_limits: Arc::new(BodyLimits::new(max_connections_per_address.is_some())),
            connections: Connections::new(max_connections, max_connections_per_address, Arc::clone(&metrics)),
            unsent_responses: Arc::default(),
            flows: Flows::default(),
            error_pace: ErrorPace::default(),
            instances,
            drain_timeout,
            component_errors: RepeatedWarning::new(),
            metrics,
        }
    }

    /// Serves until the first signal, and returns when the requests in flight have ended or were aborted.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: &StopSignals) {
        let mut acceptor = Acceptor::new(Arc::clone(&self), listener);
        let _ = stop.first.run_until_cancelled(acceptor.accept_all()).await;
        let deadline = Instant::now() + self.drain_timeout;
        acceptor.drain(self.drain_timeout, &stop.second).await;
        let time_left = deadline.saturating_duration_since(Instant::now());
        self.instances.drain(time_left.clamp(MIN_INSTANCE_DRAIN_TIME, MAX_INSTANCE_DRAIN_TIME)).await;
    }

    /// Serves a connection until it is closed.
    async fn serve_connection(
        self: Arc<Self>,
        socket: ClientSocket,
        client: SocketAddr,
        open: OpenConnection,
    ) {
        let connection = open.connection();
        let stream = ClientStream::new(socket, Arc::clone(&connection), Arc::clone(&self.metrics));
        let service =
            service_fn(|request| Arc::clone(&self).respond(request, client, Arc::clone(&connection)));
        let serving = hyper::server::conn::http1::Builder::new()
            .max_buf_size(head::MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        let served = tokio::select! {
            biased;
            () = connection.evicted() => return,
            served = &mut serving => served,
            // An idle connection is closed when it is polled.
            () = connection.draining() => tokio::select! {
                biased;
                () = connection.evicted() => return,
                served = serving => served,
            },
        };
        if let Err(error) = served {
            tracing::debug!(error = &error as &dyn std::error::Error, "a connection failed");
        }
    }

    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        client: SocketAddr,
        connection: Arc<Connection>,
    ) -> Result<Response<ResponseBody>, std::convert::Infallible> {
        let began = Instant::now();
        let id = request_head::request_id(&mut request);
        let method = request.method().clone();
        let path = request.uri().path();
        let own_path = own_pages::has(path).then(|| path.to_owned());
        let route = if own_path.is_some() { None } else { self.router.find(path) };
        let candidates = Candidates::of(request.headers(), connection.address());
        let body = ResponseBody::begin(Arc::clone(&self.metrics), Arc::clone(&connection));
        let upload = Arc::clone(body.upload());
        if request.body().is_end_stream() {
            upload.set_complete();
        }
        let mut span = route.and_then(|route| request_head::begin_span(&mut request, route, &id));
        let dispatched = match (route, own_path) {
            (Some(route), _) => {
                let trace = span.as_ref().map(Span::parent);
                let origin = Origin { client, candidates, trace };
                self.dispatch(request, route, origin, &connection, &upload, body.client_disconnect()).await
            }
            (None, path) => self.own_pages.respond(&method, &path.unwrap_or_default(), &connection).await,
        };
        // The component writes the log line of a request that it answers.
        let mut response = dispatched.unwrap_or_else(|error| {
            let (status, ms) = (error.status().as_u16(), milliseconds(began.elapsed()));
            tracing::info!(request_id = id, %method, status, ms, ?error, "request refused by the server");
            server_error::response(error, &id)
        });
        if response.status().as_u16() >= 400 {
            let flow = self.flows.flow(candidates);
            response = self.error_pace.delay(flow, response, &connection, &upload).await;
        }
        if let Some(span) = &mut span {
            let status = response.status();
            span.set_number("http.response.status_code", status.as_u16().into());
            if status.is_server_error() {
                span.fail(status.as_str());
            }
        }
        drop(span);
        // hyper closes the connection if the body was not read; a client must not send the next request on it.
        if connection.draining_since().is_some() || !upload.is_complete() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        self.metrics.responded(
            route.map_or(NO_ROUTE, |route| route.pattern),
            response.status(),
            began.elapsed(),
        );
        let sent = method != Method::HEAD;
        Ok(response.map(|content| body.with(content, sent, &self.unsent_responses)))
    }

    /// The response of the component at this route.
    async fn dispatch(
        &self,
        mut request: Request<Incoming>,
        route: &Route,
        Origin { client, candidates, trace }: Origin,
        connection: &Arc<Connection>,
        upload: &Arc<Upload>,
        client_disconnect: ClientDisconnect,
    ) -> Result<Response<WasiBody>, ServerError> {
        request_head::prepare(&mut request, route, client)?;
        let (mut head, body) = request.into_parts();
        let received = request_body::receive(body, connection, &self.body_limits).await?;

        let arrived = Instant::now();
        let flow = self.flows.flow(candidates);
        let permits = self.concurrency_limit.acquire(flow, 0).await.inspect_err(|_| {
            self.metrics.rejected.inc();
        })?;
        upload.set_permits(permits);
        head.headers.insert(AGE_MS, milliseconds(arrived.elapsed()).into());
        let (body, isolation) = match received {
            Received::Small(body) => {
                upload.set_complete();
                if head.headers.remove(header::TRANSFER_ENCODING).is_some() {
                    head.headers.insert(header::CONTENT_LENGTH, body.bytes().into());
                }
                (body.map_err(|never| match never {}).boxed_unsync(), Isolation::Shared)
            }
            Received::Large(body) => {
                let reception = Reception {
                    upload: Arc::clone(upload),
                    connection: Arc::clone(connection),
                    limits: Arc::clone(&self.body_limits),
                    concurrency_limit: Arc::clone(&self.concurrency_limit),
                    flow,
                    credentials: candidates.credentials(),
                };
                (body.into_body(reception), Isolation::Dedicated)
            }
        };
        let request = Request::from_parts(head, body);
        let handled =
            route.handler.handle(request, isolation, RequestContext { client_disconnect, flow, trace }).await;
        upload.responded();
        match (upload.failure(), handled) {
            // Also if the component responded: it did not get the body that the client announced.
            (Some(error), _) => {
                if error == ServerError::TooManyRequests {
                    self.metrics.rejected.inc();
                }
                Err(error)
            }
            (None, Ok(response)) => {
                if self.flows.record(candidates, response.headers()) {
                    connection.set_has_valid_key();
                }
                Ok(response)
            }
            (None, Err(error)) => {
                if let Some(count) = self.component_errors.record() {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, count, "a component gave no response");
                }
                Err(match error {
                    ComponentError::TimedOut => ServerError::ComponentTimedOut,
                    ComponentError::NoInstance(_) => ServerError::NoInstance,
                    ComponentError::Failed(_) => ServerError::ComponentFailed,
                })
            }
        }
    }
}

/// Who has sent a request.
struct Origin {
    client: SocketAddr,
    candidates: Candidates,
    trace: Option<Parent>,
}

const AGE_MS: HeaderName = HeaderName::from_static(wire::AGE_MS);

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
