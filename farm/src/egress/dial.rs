//! Connects to one of the addresses that were judged, directly or through the operator's upstream proxy.
//!
//! Invariant: connects to the given addresses and to no other, and resolves no name but the upstream
//! proxy's.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use http_body_util::Empty;
use hyper::{
    Request, StatusCode,
    client::conn::http1,
    header::{HOST, PROXY_AUTHORIZATION},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::either::Either;

use crate::config::UpstreamProxy;

/// The recommended Connection Attempt Delay of RFC 8305, section 5.
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// For all addresses together.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Further addresses do not help to reach a host. They are judged all the same.
const MAX_DIALLED_ADDRESSES: usize = 8;
const MAX_PROXY_RESPONSE_HEAD_BYTES: usize = 16 * 1024;

/// A connection to a host, or a tunnel to it through the upstream proxy.
pub(super) type HostStream = Either<TcpStream, TokioIo<Upgraded>>;

#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("the host refused the connection")]
    Refused(#[source] io::Error),
    #[error("the host is unreachable")]
    Unreachable(#[source] io::Error),
    #[error("the host did not answer in time")]
    Timeout,
    #[error("the upstream proxy failed")]
    Upstream(#[from] UpstreamError),
}

pub(super) async fn dial(
    addresses: &[IpAddr],
    port: u16,
    upstream: Option<&UpstreamProxy>,
    deadline: Instant,
) -> Result<HostStream, DialError> {
    let deadline = deadline.min(Instant::now() + DIAL_TIMEOUT);
    let targets = addresses.iter().take(MAX_DIALLED_ADDRESSES).map(|&address| (address, port).into());
    let attempt = |target| async move {
        match upstream {
            None => connect(target).await.map(Either::Left),
            Some(proxy) => Ok(Either::Right(TokioIo::new(tunnel(proxy, target).await?))),
        }
    };
    timeout_at(deadline, race(targets, attempt)).await.unwrap_or(Err(DialError::Timeout))
}

/// Happy Eyeballs (RFC 8305): starts an attempt for one target after the other, each after a delay or as soon
/// as an attempt has failed, and returns the first connection. Attempts under way are dropped then.
///
/// `HttpConnector` of hyper-util tries the addresses of one family one after the other, so a silent first
/// address would hold up the others until its timeout.
async fn race<T, Attempt: Future<Output = Result<T, DialError>>>(
    mut targets: impl Iterator<Item = SocketAddr>,
    attempt: impl Fn(SocketAddr) -> Attempt,
) -> Result<T, DialError> {
    let mut attempts = FuturesUnordered::new();
    let mut failure = DialError::Timeout;
    loop {
        attempts.extend(targets.next().map(&attempt));
        match timeout(CONNECTION_ATTEMPT_DELAY, attempts.next()).await {
            Ok(Some(Ok(connection))) => return Ok(connection),
            Ok(Some(Err(error))) => failure = error,
            Ok(None) => return Err(failure),
            Err(_) => {}
        }
    }
}

async fn connect(target: SocketAddr) -> Result<TcpStream, DialError> {
    let stream = TcpStream::connect(target).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => DialError::Refused(error),
        _ => DialError::Unreachable(error),
    })?;
    // A small request does not wait until the one before it is acknowledged.
    stream.set_nodelay(true).map_err(DialError::Unreachable)?;
    Ok(stream)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("cannot connect to it")]
    Connection(#[from] io::Error),
    #[error("it did not answer as an HTTP proxy")]
    Http(#[from] hyper::Error),
    #[error("it answered with status {0}")]
    Status(StatusCode),
}

/// Makes a tunnel to `target`, which every 2xx status does (RFC 9110, section 9.3.6).
async fn tunnel(proxy: &UpstreamProxy, target: SocketAddr) -> Result<Upgraded, UpstreamError> {
    let stream = TcpStream::connect((proxy.host.as_str(), proxy.port)).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::Builder::new()
        .title_case_headers(true)
        .max_buf_size(MAX_PROXY_RESPONSE_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await?;
    let target = target.to_string();
    let mut request = Request::connect(&target)
        .header(HOST, &target)
        .body(Empty::<Bytes>::new())
        .expect("an address with a port is a valid authority and header value");
    if let Some(authorization) = &proxy.authorization {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    let upgraded = async {
        let response = sender.send_request(request).await?;
        if !response.status().is_success() {
            return Err(UpstreamError::Status(response.status()));
        }
        Ok(hyper::upgrade::on(response).await?)
    };
    let connection = async { Ok(connection.with_upgrades().await?) };
    tokio::try_join!(upgraded, connection).map(|(upgraded, ())| upgraded)
}

#[cfg(test)]
mod tests;
