//! Connects to one of the addresses that were judged, directly or through the operator's upstream proxy.
//!
//! Invariant: connects to the given addresses and to no other, and resolves no name but the upstream
//! proxy's. The proxy's password is not shown.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use http_body_util::Empty;
use hyper::{
    Request, StatusCode,
    client::conn::http1,
    header::{HOST, HeaderValue, PROXY_AUTHORIZATION},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::either::Either;
use url::Url;

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
    upstream: Option<&Upstream>,
    deadline: Instant,
) -> Result<HostStream, DialError> {
    let deadline = deadline.min(Instant::now() + DIAL_TIMEOUT);
    let targets = addresses.iter().take(MAX_DIALLED_ADDRESSES).map(|&address| (address, port).into());
    let attempt = |target| async move {
        match upstream {
            None => connect(target).await.map(Either::Left),
            Some(upstream) => Ok(Either::Right(TokioIo::new(upstream.connect(target).await?))),
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

/// The operator's HTTP proxy.
#[derive(Debug)]
pub(super) struct Upstream {
    host: String,
    port: u16,
    /// Marked as sensitive, so `Debug` does not show it.
    authorization: Option<HeaderValue>,
}

/// Why the setting is not a proxy. Does not show the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUpstream {
    /// Not a URL.
    #[error("it is not a URL such as http://proxy.example:3128")]
    NotUrl,
    /// Another kind of proxy.
    #[error("only HTTP proxies are supported: the URL must begin with http://")]
    Scheme,
    /// The URL has no host, or has a path, a query or a fragment.
    #[error("it must have a host, and no path")]
    Path,
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

impl Upstream {
    pub(super) fn parse(setting: &SecretString) -> Result<Self, InvalidUpstream> {
        let url = Url::parse(setting.expose_secret()).map_err(|_| InvalidUpstream::NotUrl)?;
        if url.scheme() != "http" {
            return Err(InvalidUpstream::Scheme);
        }
        let has_no_path = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| has_no_path).ok_or(InvalidUpstream::Path)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port().unwrap_or(80), authorization: basic_credentials(&url) })
    }

    /// A tunnel to `target`. All 2xx statuses make one (RFC 9110, section 9.3.6).
    async fn connect(&self, target: SocketAddr) -> Result<Upgraded, UpstreamError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
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
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let tunnel = async {
            let response = sender.send_request(request).await?;
            if !response.status().is_success() {
                return Err(UpstreamError::Status(response.status()));
            }
            Ok(hyper::upgrade::on(response).await?)
        };
        let connection = async { Ok(connection.with_upgrades().await?) };
        tokio::try_join!(tunnel, connection).map(|(tunnel, ())| tunnel)
    }
}

fn basic_credentials(url: &Url) -> Option<HeaderValue> {
    let password = url.password();
    if url.username().is_empty() && password.is_none() {
        return None;
    }
    let mut credentials: Vec<u8> = percent_decode_str(url.username()).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(password.unwrap_or_default()));
    let value = format!("Basic {}", BASE64_STANDARD.encode(credentials));
    let mut value = HeaderValue::try_from(value).expect("base64 is valid in a header");
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests;
