//! The HTTP server that passes requests to the components.
//!
//! Invariant: connections, requests and the bytes of their bodies are limited, and each of them has a
//! timeout. An error of the server itself is `{"error": "…"}`, except where hyper refuses what is not a request.

mod connection;
mod exchange;
mod limits;
mod own_pages;
mod request_body;
mod request_head;
mod server_error;
mod valid_keys;

use std::{
    any::Any,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use axum::response::IntoResponse as _;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_program::{
    RepeatedWarning, error_chain,
    telemetry::{self, Context, OpenTelemetrySpanExt as _, Status},
};
use platen_shared::{dashboard_path, wire};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Span;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::{
    components::Component,
    db::FlowId,
    metrics::Metrics,
    runtime::{ComponentError, Handler, InstanceDrain, Isolation, RequestContext},
};
use connection::Connection;
use exchange::{Exchange, ResponseBody, UnsentResponses};
use limits::{AddressLimit, ConcurrencyLimit, Permit};
use request_body::{ArrivingBody, BodyLimits};
use request_head::ClientAddress;
use server_error::ServerError;
use valid_keys::ValidKeys;

pub(crate) use own_pages::Health;

/// The label of requests that match no route.
const NO_ROUTE: &str = "none";
/// Nearly all requests wait for the farm, with some kilobytes of memory each.
const MAX_CONCURRENT: usize = 512;
const MAX_QUEUED: usize = 1024;
/// Passwords that are hashed at once. Further hashes would take the time of renders, and 19 MiB each.
const MAX_CONCURRENT_HASHES: usize = 2;
const AGE_MS: HeaderName = HeaderName::from_static(wire::AGE_MS);

pub(crate) struct Server {
    /// Ordered as their routes are compared with a path.
    components: Vec<(Component, Handler)>,
    health: Health,
    /// One permit for each connection.
    connections: Arc<Semaphore>,
    connections_by_address: Arc<AddressLimit>,
    concurrency_limit: ConcurrencyLimit,
    /// The limit of requests with passwords.
    hashing: ConcurrencyLimit,
    body_limits: Arc<BodyLimits>,
    unsent_responses: UnsentResponses,
    valid_keys: ValidKeys,
    instances: InstanceDrain,
    limits: ServerLimits,
    draining: CancellationToken,
    aborted: CancellationToken,
    tasks: TaskTracker,
    warnings: Warnings,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Warnings {
    accept: RepeatedWarning,
    full: RepeatedWarning,
    refused: RepeatedWarning,
    component: RepeatedWarning,
}

/// Limits that an operator sets.
#[derive(Debug, Clone)]
pub(crate) struct ServerLimits {
    pub(crate) max_connections: usize,
    /// `None`: addresses are not limited.
    pub(crate) max_connections_per_address: Option<usize>,
    /// The header in which a reverse proxy sends the address of its client.
    pub(crate) client_address_header: Option<HeaderName>,
    /// The time for requests in progress, after a signal.
    pub(crate) drain_timeout: Duration,
}

impl Server {
    pub(crate) fn new(
        components: Vec<(Component, Handler)>,
        instances: InstanceDrain,
        limits: ServerLimits,
        health: Health,
        metrics: Arc<Metrics>,
    ) -> Self {
        let ServerLimits { max_connections, max_connections_per_address, client_address_header, .. } =
            &limits;
        let are_addresses_limited = max_connections_per_address.is_some() || client_address_header.is_some();
        Self {
            components,
            health,
            connections: Arc::new(Semaphore::new(*max_connections)),
            connections_by_address: AddressLimit::new(*max_connections, *max_connections_per_address),
            concurrency_limit: ConcurrencyLimit::new(MAX_CONCURRENT, MAX_QUEUED),
            hashing: ConcurrencyLimit::new(MAX_CONCURRENT_HASHES, MAX_QUEUED),
            body_limits: Arc::new(BodyLimits::new(are_addresses_limited)),
            unsent_responses: UnsentResponses::default(),
            valid_keys: ValidKeys::default(),
            instances,
            limits,
            draining: CancellationToken::new(),
            aborted: CancellationToken::new(),
            tasks: TaskTracker::new(),
            warnings: Warnings::default(),
            metrics,
        }
    }

    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Response<ResponseBody> {
        let began = Instant::now();
        let id = request_head::request_id(&mut request);
        let method = request.method().clone();
        let path = request.uri().path();
        let is_own = own_pages::has(path);
        let component = self.components.iter().find(|(component, _)| !is_own && component.has(path));
        let route = component.map(|(component, _)| component.route());
        let reads_page = own_pages::reads_page(path, request.headers());
        let header = self.limits.client_address_header.as_ref();
        let client = ClientAddress::of(request.headers(), header, connection.peer);
        let exchange = Arc::new(Exchange::new(connection, client));
        let mut body = ResponseBody::begin(Arc::clone(&exchange), Arc::clone(&self.metrics));
        let span = route.map_or_else(Span::none, |route| request_head::begin_span(&mut request, route, &id));
        let (head, arriving) = request.into_parts();
        let arriving = ArrivingBody::new(arriving, &head.headers, Arc::clone(&exchange));
        let request = Request::from_parts(head, arriving);
        let dispatched = match component {
            Some((_, handler)) => {
                let trace = telemetry::context(&span);
                self.dispatch(request, handler, trace, &exchange, &mut body.permit).await
            }
            None if is_own => {
                let is_draining = self.draining.is_cancelled();
                let response = own_pages::respond(&method, request.uri(), &self.health, is_draining);
                Ok(wasi_response(response.await))
            }
            None => Err(ServerError::NotFound),
        };
        // The component writes the log line of a request that it answers.
        let mut response = dispatched.unwrap_or_else(|error| {
            let (status, ms) = (error.status().as_u16(), milliseconds(began.elapsed()));
            tracing::info!(request_id = id, %method, status, ms, ?error, "request refused by the server");
            wasi_response(error.into_response())
        });
        if reads_page && response.status() == StatusCode::NOT_FOUND {
            response = wasi_response(own_pages::not_found());
        }
        let status = response.status();
        span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.set_status(Status::error(status.as_str().to_owned()));
        }
        drop(span);
        if !response.headers().contains_key(wire::REQUEST_ID)
            && let Ok(id) = HeaderValue::from_str(&id)
        {
            response.headers_mut().insert(HeaderName::from_static(wire::REQUEST_ID), id);
        }
        // A client must not send the next request while the rest of the last one is discarded.
        if exchange.connection.draining.is_cancelled() || !exchange.is_received.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        self.metrics.responded(route.unwrap_or(NO_ROUTE), status, began.elapsed());
        let sent = method != Method::HEAD;
        response.map(|content| body.with(content, sent, &self.unsent_responses))
    }

    /// The response of a component.
    async fn dispatch(
        &self,
        mut request: Request<ArrivingBody>,
        handler: &Handler,
        trace: Option<Context>,
        exchange: &Arc<Exchange>,
        permit: &mut Option<Permit>,
    ) -> Result<Response<WasiBody>, ServerError> {
        request_head::prepare(&mut request, exchange.connection.peer)?;
        let (mut head, body) = request.into_parts();
        let takes_password = head.method == Method::POST && dashboard_path::takes_password(head.uri.path());
        let hashing = takes_password.then(|| self.hashing.clone());
        let body = body.receive(&self.body_limits, hashing).await?;
        let arrived = Instant::now();
        let flow = FlowId::of(exchange.client);
        *permit = Some(self.concurrency_limit.acquire(flow).await.inspect_err(|_| {
            self.metrics.rejected.inc();
        })?);
        head.headers.insert(AGE_MS, milliseconds(body.waited + arrived.elapsed()).into());
        let isolation = match body.bytes {
            Some(bytes) => {
                if head.headers.remove(header::TRANSFER_ENCODING).is_some() {
                    head.headers.insert(header::CONTENT_LENGTH, bytes.into());
                }
                Isolation::Shared
            }
            None => Isolation::Dedicated,
        };
        let key = self.valid_keys.mark(&mut head.headers);
        let request = Request::from_parts(head, body.body);
        let client_disconnect = exchange.client_disconnect.clone();
        let until_response: Arc<dyn Any + Send + Sync> = Arc::clone(&exchange.hashing_permit) as _;
        let context = RequestContext { client_disconnect, flow, trace, until_response: Some(until_response) };
        let response = handler.handle(request, isolation, context).await;
        if let (Some(key), Ok(response)) = (key, &response) {
            self.valid_keys.learn(key, response.status(), response.headers());
        }
        exchange.responded.cancel();
        exchange.hashing_permit.lock().take();
        // Also if the component responded: it did not get the body that the client announced.
        if let Some(error) = exchange.body_error.get() {
            if *error == ServerError::TooManyRequests {
                self.metrics.rejected.inc();
            }
            return Err(*error);
        }
        response.map_err(|error| {
            if let Some(count) = self.warnings.component.record() {
                tracing::error!(error = error_chain(&error), count, "a component gave no response");
            }
            match error {
                ComponentError::TimedOut => ServerError::ComponentTimedOut,
                ComponentError::NoInstance(_) => ServerError::NoInstance,
                ComponentError::Failed(_) => ServerError::ComponentFailed,
            }
        })
    }
}

fn wasi_response(response: axum::response::Response) -> Response<WasiBody> {
    response.map(|body| body.map_err(|_| Error::InternalError(None)).boxed_unsync())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
