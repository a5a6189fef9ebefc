//! The HTTP client for the requests of components.
//!
//! Invariant: a request is never sent twice. [`Error::ConnectionRefused`], [`Error::ConnectionTimeout`],
//! [`Error::DnsError`] and [`Error::DestinationUnavailable`] mean that no byte of it was sent.

use std::{io, time::Duration};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Used where the component sets none; longer than any render.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// Shorter than that of servers and proxies, so that a request is not sent into a connection that is just
/// closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A response, and the future that drives its connection while its body is read.
pub(super) type Exchange =
    Result<(http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

/// Keeps connections alive between requests; a cheap handle.
#[derive(Clone)]
pub(super) struct Client(legacy::Client<HttpConnector, WasiBody>);

impl Client {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            // The component set the header, and the rule was checked against the same authority.
            .set_host(false)
            // Only a request of which nothing was written is sent over another connection.
            .retry_canceled_requests(true)
            .build(connector);
        Self(client)
    }

    pub(super) async fn send(
        &self,
        mut request: http::Request<WasiBody>,
        options: RequestOptions,
    ) -> Exchange {
        if request.uri().scheme() == Some(&http::uri::Scheme::HTTPS) {
            // Wasmtime's implementation, with TLS and one connection per request.
            let (response, io) = wasmtime_wasi_http::default_send_request(request, Some(options)).await?;
            return Ok((response.map(BodyExt::boxed_unsync), Box::new(io)));
        }
        // A hop-by-hop header, which would close the pooled connection.
        request.headers_mut().remove(http::header::CONNECTION);
        let first_byte_timeout = options.first_byte_timeout.unwrap_or(DEFAULT_TIMEOUT);
        let response = timeout(first_byte_timeout, self.0.request(request))
            .await
            .map_err(|_| Error::ConnectionReadTimeout)?
            .map_err(|error| map_error(&error))?;
        let body = |body: Incoming| body.map_err(Error::Hyper).boxed_unsync();
        Ok((response.map(body), Box::new(async { Ok(()) })))
    }
}

fn map_error(error: &legacy::Error) -> Error {
    tracing::warn!(error = error as &dyn std::error::Error, "the request of a component failed");
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
