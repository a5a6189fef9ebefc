//! Making a connection that was decided on.
//!
//! Invariant: dials addresses that were judged, and nothing else. Left to others: the decision
//! (traffic), what goes over the connection (forward, proxy).

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep_until, timeout_at},
};
use url::Host;

use super::{counting_stream::CountingStream, job_egress::JobEgress, upstream::UpstreamError};

/// How long the next address waits for the one before (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);
/// Whoever does not answer within this does not answer.
const LONGEST: Duration = Duration::from_secs(10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    /// It may not be made, or leads nowhere.
    #[error("not allowed")]
    NotAllowed,
    /// Nobody listens there.
    #[error("refused")]
    Refused(#[source] io::Error),
    /// Something else is wrong with the way there.
    #[error("unreachable")]
    Unreachable(#[source] io::Error),
    /// It takes too long.
    #[error("no answer in time")]
    TooSlow,
    /// The operator's proxy does not help.
    #[error("the upstream proxy failed")]
    Upstream(#[from] UpstreamError),
}

/// Decides on a connection for a job, and makes it.
pub(super) async fn connect(
    traffic: &Arc<JobEgress>,
    host: Host<String>,
    port: u16,
) -> Result<CountingStream, DialError> {
    let target = (host, port);
    let decision = traffic.decide(&target).await;
    if !decision.verdict.allows() {
        return Err(DialError::NotAllowed);
    }
    let limit = traffic.until().min(Instant::now() + LONGEST);
    let dialled = timeout_at(limit, dial(traffic, &decision.addresses, port)).await;
    let dialled = dialled.unwrap_or(Err(DialError::TooSlow));
    traffic.dialled(&target, dialled.as_ref().err());
    Ok(CountingStream::new(dialled?, Arc::clone(traffic), target))
}

async fn dial(traffic: &JobEgress, addresses: &[IpAddr], port: u16) -> Result<TcpStream, DialError> {
    let targets = addresses.iter().map(|&address| SocketAddr::from((address, port)));
    let stream = match &traffic.egress().0.upstream {
        None => race(targets).await?,
        Some(upstream) => {
            let mut failure = DialError::TooSlow;
            for target in targets {
                match upstream.connect(target).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failure = error.into(),
                }
            }
            return Err(failure);
        }
    };
    Ok(stream)
}

/// Tries one after the other, each with a head start before the next, and takes the first that
/// answers.
async fn race(targets: impl Iterator<Item = SocketAddr>) -> Result<TcpStream, DialError> {
    let start = Instant::now();
    let mut attempts: FuturesUnordered<_> = (0..)
        .zip(targets)
        .map(|(place, target)| async move {
            sleep_until(start + HEAD_START * place).await;
            TcpStream::connect(target).await
        })
        .collect();
    let mut failure = DialError::TooSlow;
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(stream) => {
                // Small requests must not wait for the acknowledgement of the one before.
                stream.set_nodelay(true).map_err(DialError::Unreachable)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                failure = DialError::Refused(error);
            }
            Err(error) => failure = DialError::Unreachable(error),
        }
    }
    Err(failure)
}
