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
use tokio::{net::TcpStream, time::timeout};
use tokio_util::either::Either;

use super::HOST_TIMEOUT;
use crate::egress_config::UpstreamProxy;

/// The recommended Connection Attempt Delay of RFC 8305, section 5.
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);
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
) -> Result<HostStream, DialError> {
    let targets = addresses.iter().take(MAX_DIALLED_ADDRESSES).map(|&address| (address, port).into());
    let attempt = |target| async move {
        match upstream {
            None => connect(target).await.map(Either::Left),
            Some(proxy) => Ok(Either::Right(TokioIo::new(tunnel(proxy, target).await?))),
        }
    };
    timeout(HOST_TIMEOUT, race(targets, attempt)).await.unwrap_or(Err(DialError::Timeout))
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
mod tests {
    use std::cell::RefCell;

    use Attempt::{Connects, Fails, Silent};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        time::{Instant, sleep},
    };

    use super::*;

    /// How an attempt ends, and after how many milliseconds.
    #[derive(Debug, Clone, Copy)]
    enum Attempt {
        Connects(u64),
        Fails(u64),
        Silent,
    }

    /// Races scripted attempts, in virtual time. Returns the index of the one that connected, the time in
    /// milliseconds at which each began, and the time at which the race ended.
    async fn raced(script: &[Attempt]) -> (Option<usize>, Vec<u128>, u128) {
        let start = Instant::now();
        let begun = RefCell::default();
        let targets = (0..script.len()).map(|index| ([192, 0, 2, u8::try_from(index).unwrap()], 80).into());
        let attempt = |target: SocketAddr| {
            let begun: &RefCell<Vec<_>> = &begun;
            async move {
                let index = begun.borrow().len();
                assert_eq!(target.to_string(), format!("192.0.2.{index}:80"), "the order of the addresses");
                begun.borrow_mut().push(start.elapsed().as_millis());
                let (Connects(after) | Fails(after)) = script[index] else {
                    return std::future::pending().await;
                };
                sleep(Duration::from_millis(after)).await;
                match script[index] {
                    Connects(_) => Ok(index),
                    _ => Err(DialError::Refused(io::ErrorKind::ConnectionRefused.into())),
                }
            }
        };
        let outcome = race(targets, attempt).await;
        assert!(matches!(outcome, Ok(_) | Err(DialError::Refused(_))), "{outcome:?}");
        (outcome.ok(), begun.into_inner(), start.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_begin_after_a_delay_or_after_a_failure() {
        for (script, expected) in [
            // The first address answers: no other one is dialled.
            (&[Connects(0), Connects(0)][..], (Some(0), vec![0], 0)),
            (&[Connects(249), Connects(0)], (Some(0), vec![0], 249)),
            // A silent address delays each further one by 250 ms.
            (&[Silent, Silent, Connects(10)], (Some(2), vec![0, 250, 500], 510)),
            // After a failure the next address is dialled at once.
            (&[Fails(0), Fails(5), Connects(10)], (Some(2), vec![0, 0, 5], 15)),
            (&[Silent, Fails(5), Connects(10)], (Some(2), vec![0, 250, 255], 265)),
            // An earlier attempt that fails late starts the next one too, and the delay begins again.
            (&[Fails(300), Silent, Silent, Connects(0)], (Some(3), vec![0, 250, 300, 550], 550)),
            // The first connection wins, whichever attempt makes it.
            (&[Connects(300), Connects(100)], (Some(0), vec![0, 250], 300)),
            (&[Connects(900), Connects(100)], (Some(1), vec![0, 250], 350)),
            // All fail: the race ends with the last failure.
            (&[Fails(0), Fails(0)], (None, vec![0, 0], 0)),
            (&[Fails(600), Fails(0)], (None, vec![0, 250], 600)),
        ] {
            assert_eq!(raced(script).await, expected, "{script:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn dialling_ends_after_ten_seconds() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}", silent.local_addr().unwrap());
        let upstream = UpstreamProxy::parse(&upstream.into()).unwrap();
        let start = Instant::now();
        let error = dial(&[[192, 0, 2, 1].into()], 80, Some(&upstream)).await.unwrap_err();
        assert!(matches!(error, DialError::Timeout), "{error:?}");
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test]
    async fn a_closed_port_is_reported_as_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let addresses = [address.ip()];
        let dial = || dial(&addresses, address.port(), None);
        let Either::Left(stream) = dial().await.unwrap() else { panic!("not a direct connection") };
        assert!(stream.nodelay().unwrap() && stream.peer_addr().unwrap() == address);
        drop(listener);
        assert!(matches!(dial().await.unwrap_err(), DialError::Refused(_)));
    }

    /// The head of the request to a proxy that answers with `response`, and what comes of the tunnel.
    async fn tunnelled(response: &'static str) -> (String, Result<HostStream, DialError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://user:pass@{}", listener.local_addr().unwrap());
        let upstream = UpstreamProxy::parse(&upstream.into()).unwrap();
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let _ = stream.write_all(response.as_bytes()).await;
            String::from_utf8(head).unwrap()
        };
        let addresses = ["2606:4700::1".parse().unwrap()];
        tokio::join!(proxy, dial(&addresses, 443, Some(&upstream)))
    }

    #[tokio::test]
    async fn a_tunnel_is_requested_by_address_with_the_credentials() {
        // HTTP/1.0, another 2xx status, and the host's first bytes together with the proxy's answer.
        for response in [
            "HTTP/1.0 200 Connection established\r\n\r\nearly",
            "HTTP/1.1 201\r\ncontent-length: 5\r\n\r\nearly",
        ] {
            let (head, stream) = tunnelled(response).await;
            assert!(head.starts_with("CONNECT [2606:4700::1]:443 HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("\r\nHost: [2606:4700::1]:443\r\n"), "{head}");
            assert!(head.contains("\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n"), "{head}");
            let mut received = String::new();
            stream.unwrap().read_to_string(&mut received).await.unwrap();
            assert_eq!(received, "early");
        }
    }

    #[tokio::test]
    async fn without_a_2xx_status_there_is_no_tunnel() {
        let error = |response| async move {
            match tunnelled(response).await.1.unwrap_err() {
                DialError::Upstream(error) => error,
                error => panic!("{response:?}: {error:?}"),
            }
        };
        assert!(
            matches!(error("HTTP/1.0 407\r\n\r\n").await, UpstreamError::Status(status) if status == 407)
        );
        assert!(matches!(error("HTTP/1.1 302 Found\r\n\r\n").await, UpstreamError::Status(_)));
        for response in ["SSH-2.0\r\n\r\n", "", "HTTP/1.1 200 OK\r\n"] {
            assert!(matches!(error(response).await, UpstreamError::Http(_)), "{response:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(2 * MAX_PROXY_RESPONSE_HEAD_BYTES));
        assert!(matches!(error(endless.leak()).await, UpstreamError::Http(_)));
    }
}
