//! The HTTP server that passes requests to the components.
//!
//! Invariant: connections, requests and the bytes of their bodies are limited, and each of them has a
//! timeout. An error of the server itself is `{"error": "…"}`.

mod concurrency_limit;
mod connection;
mod metrics_endpoint;
mod response_body;
mod router;
mod server_error;
mod upload;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header, uri};
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
    runtime::{ClientDisconnect, ComponentError, Handler, Isolation},
};
use concurrency_limit::{ConcurrencyLimit, Permits};
use response_body::ResponseBody;
use router::{Route, Router};
use server_error::ServerError;
use upload::Upload;

pub(crate) use metrics_endpoint::serve_metrics;

/// More connections wait to be accepted.
const MAX_CONNECTIONS: usize = 4096;
/// For the head of a request, also of the next one on a connection.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// A request with a larger body has an instance of its own, and its body counts in [`ConcurrencyLimit`].
const MAX_SMALL_BODY_BYTES: u64 = 1024 * 1024;
/// After a signal; a render and the sending of its response take less.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(40);
/// After an error of `accept`.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Spin responds to these paths itself.
const WELL_KNOWN: &str = "/.well-known/spin/";
const HEALTH: &str = "/.well-known/spin/health";
/// The label of requests that match no route.
const NO_ROUTE: &str = "none";

pub(crate) struct Server {
    router: Router,
    concurrency_limit: ConcurrencyLimit,
    metrics: Arc<Metrics>,
}

impl Server {
    /// `handlers` has every component that the routes name.
    pub(crate) fn new(
        routes: &[HttpTrigger],
        handlers: &BTreeMap<String, Handler>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let concurrency_limit = ConcurrencyLimit::default();
        Self { router: Router::new(routes, handlers), concurrency_limit, metrics }
    }

    /// Serves until `stop` completes, and returns when the requests in flight have ended.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut stop = std::pin::pin!(stop);
        loop {
            let accept = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut stop => break,
                accepted = accept => accepted,
            };
            match accepted {
                Ok((stream, client)) => {
                    let serving = graceful.watch(Arc::clone(&self).connection(stream, client));
                    tokio::spawn(async move {
                        let _permit = permit;
                        if let Err(error) = serving.await {
                            tracing::debug!(error = &error as &dyn std::error::Error, "a connection failed");
                        }
                    });
                }
                Err(error) => {
                    // Mostly a lack of file descriptors, until other connections are closed.
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot accept a connection");
                    sleep(ACCEPT_RETRY_INTERVAL).await;
                }
            }
        }
        drop(listener);
        if timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
            tracing::warn!("aborting requests that did not end in time");
        }
    }

    fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        client: SocketAddr,
    ) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
        // Small responses are sent at once.
        let _ = stream.set_nodelay(true);
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_READ_TIMEOUT)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(connection::ClientStream::new(stream)),
                service_fn(move |request| Arc::clone(&self).respond(request, client)),
            )
    }

    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        client: SocketAddr,
    ) -> Result<Response<ResponseBody>, std::convert::Infallible> {
        let began = Instant::now();
        let id = request_id(&mut request);
        let method = request.method().clone();
        let path = request.uri().path();
        let route = if path.starts_with(WELL_KNOWN) { None } else { self.router.find(path) };
        let body = ResponseBody::begin(Arc::clone(&self.metrics));
        let dispatched = match route {
            Some(route) => self.dispatch(request, route, client, body.client_disconnect()).await,
            None if path == HEALTH => Ok((server_error::healthy(), Permits::default())),
            None => Err(ServerError::NotFound),
        };
        let (response, permits) = match dispatched {
            // The component writes the log line of this request.
            Ok(answered) => answered,
            Err(error) => {
                let response = server_error::response(error, &id);
                let status = response.status().as_u16();
                let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                tracing::info!(request_id = id, %method, status, ms, ?error, "request refused by the server");
                (response, Permits::default())
            }
        };
        self.metrics.responded(
            route.map_or(NO_ROUTE, |route| route.pattern),
            response.status(),
            began.elapsed(),
        );
        let sent = method != Method::HEAD;
        Ok(response.map(|content| body.with(content, sent, permits)))
    }

    /// The response of the component at this route.
    async fn dispatch(
        &self,
        mut request: Request<Incoming>,
        route: &Route,
        client: SocketAddr,
        client_disconnect: ClientDisconnect,
    ) -> Result<(Response<WasiBody>, Permits), ServerError> {
        prepare(&mut request, route, client)?;
        let size = body_size(&request);
        let (isolation, large_body_bytes) =
            if size > MAX_SMALL_BODY_BYTES { (Isolation::Dedicated, size) } else { (Isolation::Shared, 0) };
        let permits = self.concurrency_limit.acquire(large_body_bytes).await;
        let permits = permits.inspect_err(|_| {
            self.metrics.rejected.inc();
        })?;
        let upload = Upload::default();
        let request = request.map(|body| upload.limit(body));
        match route.handler.handle(request, isolation, client_disconnect).await {
            // Also if the component responded: the client did not send the body that it announced.
            _ if upload.timed_out() => Err(ServerError::UploadTimedOut),
            Ok(response) => Ok((response, permits)),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a component gave no response");
                Err(match error {
                    ComponentError::TimedOut => ServerError::ComponentTimedOut,
                    ComponentError::Failed(_) => ServerError::ComponentFailed,
                })
            }
        }
    }
}

/// The client's request id if it is valid, otherwise a new one, which is added to the request.
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

/// The announced size of the body in bytes; the maximum for a body without a length.
fn body_size(request: &Request<Incoming>) -> u64 {
    use hyper::body::Body as _;
    let max = limits::MAX_BODY_BYTES as u64;
    request.body().size_hint().upper().unwrap_or(max).min(max)
}

/// Gives a request the form that it has on Spin: the absolute URL, and Spin's headers, which replace those
/// of the client.
fn prepare(request: &mut Request<Incoming>, route: &Route, client: SocketAddr) -> Result<(), ServerError> {
    let authority = match request.headers().get(header::HOST) {
        Some(host) => uri::Authority::try_from(host.as_bytes()).map_err(|_| ServerError::NoHost)?,
        None => request.uri().authority().cloned().ok_or(ServerError::NoHost)?,
    };
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    let path = parts.path_and_query.get_or_insert_with(|| uri::PathAndQuery::from_static("/"));
    let spin = [
        ("spin-full-url", format!("http://{authority}{path}")),
        ("spin-path-info", route.rest_of(path.path()).to_owned()),
        ("spin-matched-route", route.pattern.to_owned()),
        ("spin-component-route", route.prefix.clone()),
        ("spin-raw-component-route", route.pattern.to_owned()),
        ("spin-base-path", "/".to_owned()),
        ("spin-client-addr", client.to_string()),
    ];
    parts.scheme = Some(uri::Scheme::HTTP);
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| ServerError::NoHost)?;
    request.headers_mut().remove(header::CONNECTION);
    for (name, value) in spin {
        let value = HeaderValue::try_from(value).map_err(|_| ServerError::NoHost)?;
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
    Ok(())
}
