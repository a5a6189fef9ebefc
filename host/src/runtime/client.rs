//! The HTTP client for the requests of components, which also reaches the farm of this process.
//!
//! Invariant: a request is never sent twice. [`Error::ConnectionRefused`], [`Error::ConnectionTimeout`],
//! [`Error::DnsError`] and [`Error::DestinationUnavailable`] mean that no byte of it was sent.

use std::{
    io,
    pin::pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use http::Uri;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        self,
        connect::{CaptureConnection, HttpConnector, capture_connection},
    },
    rt::{TokioExecutor, TokioTimer},
};
use platen_program::{CONNECT_TIMEOUT, IDLE_TIMEOUT, RepeatedWarning, error_chain, tls_config};
use tokio::{runtime::Handle, time::timeout};
use tower_service::Service as _;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::metrics::Metrics;

/// The kernel would keep up to 32 MiB of a file that its client reads slowly. With a round trip of 5 ms, this is enough
/// for 80 MB/s. Linux may allow less (`net.core.rmem_max`).
const RECEIVE_BYTES: usize = 512 * 1024;
static FAILED: RepeatedWarning = RepeatedWarning::new();

/// Keeps connections alive between requests; a cheap handle.
#[derive(Clone)]
pub(super) struct Client {
    inner: legacy::Client<HttpsConnector<HttpConnector>, WasiBody>,
    own_farm: OwnFarm,
    metrics: Arc<Metrics>,
}

/// The farm of this process, once it has started, with the threads that it runs on. Components reach it at
/// [`OWN_FARM_HOST`].
pub(crate) type OwnFarm = Arc<OnceLock<(Router, Handle)>>;

/// No host has this name: `.internal` is reserved for private use.
pub(crate) const OWN_FARM_HOST: &str = "farm.platen.internal";

impl Client {
    pub(super) fn new(own_farm: OwnFarm, metrics: Arc<Metrics>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_recv_buffer_size(Some(RECEIVE_BYTES));
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config())
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            // The component set the header, and the rule was checked against the same authority.
            .set_host(false)
            // Only a request of which nothing was written is sent over another connection.
            .retry_canceled_requests(true)
            .build(connector);
        Self { inner, own_farm, metrics }
    }

    /// Whether a request goes to the farm of this process.
    pub(super) fn is_for_own_farm(&self, uri: &Uri) -> bool {
        uri.host() == Some(OWN_FARM_HOST) && self.own_farm.get().is_some()
    }

    pub(super) async fn send(
        &self,
        request: http::Request<WasiBody>,
        connect_timeout: Option<Duration>,
    ) -> Result<http::Response<WasiBody>, Error> {
        let began = Instant::now();
        let farm = self.own_farm.get().filter(|_| self.is_for_own_farm(request.uri()));
        let response = if let Some((farm, threads)) = farm {
            let mut farm = farm.clone();
            let called = threads.spawn(async move { farm.call(request.map(Body::new)).await });
            let Ok(response) = called.await.map_err(|_| Error::ConnectionTerminated)?;
            Ok(response.map(|body| body.map_err(|_| Error::ConnectionTerminated).boxed_unsync()))
        } else {
            let response = self.exchange(request, connect_timeout.unwrap_or(CONNECT_TIMEOUT)).await;
            response.map(|response| response.map(|body| body.map_err(Error::Hyper).boxed_unsync()))
        };
        self.metrics.requested(response.is_ok(), began.elapsed());
        response
    }

    /// Sends nothing after `connect_timeout`.
    async fn exchange(
        &self,
        mut request: http::Request<WasiBody>,
        connect_timeout: Duration,
    ) -> Result<http::Response<Incoming>, Error> {
        // A hop-by-hop header, which would close the pooled connection.
        request.headers_mut().remove(http::header::CONNECTION);
        let mut connection = capture_connection(&mut request);
        let mut exchange = pin!(self.inner.request(request));
        let exchanged = tokio::select! {
            biased;
            exchanged = &mut exchange => exchanged,
            is_late = is_late(&mut connection, connect_timeout) => {
                // The request is sent only while `exchange` is polled.
                if is_late {
                    return Err(Error::ConnectionTimeout);
                }
                exchange.await
            }
        };
        exchanged.map_err(|error| map_error(&error))
    }
}

/// Waits for the connection of a request; whether there is none after the timeout.
async fn is_late(connection: &mut CaptureConnection, connect_timeout: Duration) -> bool {
    let connected = timeout(connect_timeout, connection.wait_for_connection_metadata()).await.is_ok();
    !connected && connection.connection_metadata().is_none()
}

fn map_error(error: &legacy::Error) -> Error {
    if let Some(count) = FAILED.record() {
        tracing::warn!(error = error_chain(error), count, "requests of components failed");
    }
    if !error.is_connect() {
        return Error::ConnectionTerminated;
    }
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        // The connector has no other mark for this error than its text.
        if error.to_string() == "dns error" {
            return Error::DnsError { rcode: None, info_code: None };
        }
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return Error::ConnectionRefused,
            Some(io::ErrorKind::TimedOut) => return Error::ConnectionTimeout,
            _ => cause = error.source(),
        }
    }
    Error::DestinationUnavailable
}
