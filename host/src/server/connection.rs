//! An open connection of a client.

use std::{
    error::Error,
    net::SocketAddr,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use platen_program::error_chain;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, sleep_until},
};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;

/// For a head, and for the pause before it. Reverse proxies keep connections for 60 s.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Of what is read, and of a response that waits for its client.
const MAX_BUFFER_BYTES: usize = 256 * 1024;
/// For the client to take a part of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The smallest `retry-after`.
const MIN_RETRY_TIME: Duration = Duration::from_secs(1);
/// Once the server drains: for a request to be read whose bytes the kernel has, and for one whose head has begun.
const DRAIN_READ_TIME: Duration = Duration::from_secs(1);
const DRAIN_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// What the requests of a connection know of it.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// The server drains: responses are the last ones of their connections.
    pub(super) draining: CancellationToken,
    /// Closes the connection, whatever it is doing.
    pub(super) aborted: CancellationToken,
    /// From the head of a request to the end of its response.
    pub(super) has_request: AtomicBool,
    /// When the last response with `retry-after` was sent.
    refused: Mutex<Option<Instant>>,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, draining: CancellationToken, aborted: CancellationToken) -> Self {
        Self { peer, draining, aborted, has_request: AtomicBool::new(false), refused: Mutex::default() }
    }

    pub(super) fn set_refused(&self) {
        *self.refused.lock() = Some(Instant::now());
    }

    /// Before a request that follows a refusal. A refusal takes about a millisecond of CPU time, and the server has a higher
    /// priority than browsers, so some hundred clients that do not wait as `retry-after` says would leave renders
    /// a fifth of the CPUs.
    pub(super) async fn pause_after_refusal(&self) {
        let refused = *self.refused.lock();
        if let Some(refused) = refused {
            self.draining.run_until_cancelled(sleep_until(refused + MIN_RETRY_TIME)).await;
        }
    }

    /// Serves requests with `respond` until the connection is closed.
    pub(super) async fn serve<F, B>(&self, stream: TcpStream, respond: impl Fn(Request<Incoming>) -> F)
    where
        F: Future<Output = Response<B>>,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
    {
        let _ = self.aborted.run_until_cancelled(self.serve_until_closed(stream, respond)).await;
    }

    async fn serve_until_closed<F, B>(&self, stream: TcpStream, respond: impl Fn(Request<Incoming>) -> F)
    where
        F: Future<Output = Response<B>>,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
    {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(WRITE_TIMEOUT));
        let service = service_fn(|request| {
            let response = respond(request);
            async { Ok::<_, std::convert::Infallible>(response.await) }
        });
        let mut serving = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_header_size(MAX_HEAD_BYTES)
                .max_buf_size(MAX_BUFFER_BYTES)
                .serve_connection(TokioIo::new(Box::pin(stream)), service)
        );
        let read_time = async {
            self.draining.cancelled().await;
            sleep(DRAIN_READ_TIME).await;
        };
        let served = tokio::select! {
            biased;
            served = &mut serving => Some(served),
            // hyper closes a connection at once of which it has read nothing.
            () = read_time => {
                serving.as_mut().graceful_shutdown();
                if self.has_request.load(Ordering::Acquire) {
                    Some(serving.await)
                } else {
                    tokio::time::timeout(DRAIN_HEAD_TIMEOUT, serving).await.ok()
                }
            }
        };
        if let Some(Err(error)) = served {
            tracing::debug!(error = error_chain(&error), "a connection failed");
        }
    }
}
