//! Accepts connections, serves and drains them.
//!
//! Invariant: a connection that the kernel has accepted before the server drains gets a response to its request.

use std::{
    convert::Infallible,
    io::{self, Read as _, Write as _},
    net::{Shutdown, SocketAddr},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use platen_program::{ACCEPT_RETRY_INTERVAL, error_chain, prepare_response_socket, startup::StopSignals};
use platen_shared::wire::REQUEST_ID;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::OwnedSemaphorePermit,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Server,
    limits::{DRAIN_READ_TIMEOUT, HEAD_TIMEOUT, INSTANCE_DRAIN_TIMEOUT, WRITE_TIMEOUT},
    server_error::ServerError,
};

const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The size of what is read, and of a response that waits for its client.
const MAX_BUFFER_BYTES: usize = 256 * 1024;

impl Server {
    /// Serves until the first signal, and returns when the requests in flight have ended or were aborted.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: &StopSignals) {
        let accepting = async {
            loop {
                self.accept(&listener).await;
            }
        };
        stop.first.run_until_cancelled(accepting).await;
        self.draining.cancel();
        // What the kernel has accepted gets a response, beyond `--max-connections` a refusal.
        if let Ok(listener) = listener.into_std() {
            while let Ok((stream, peer)) = listener.accept() {
                if let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
                    self.begin(stream, peer, None);
                }
            }
        }
        self.tasks.close();
        let draining = timeout(self.limits.drain_timeout, self.tasks.wait());
        let drained = stop.second.run_until_cancelled(draining).await;
        if !matches!(drained, Some(Ok(()))) {
            tracing::warn!(connections = self.tasks.len(), "aborting requests that did not end in time");
            self.aborted.cancel();
            self.tasks.wait().await;
        }
        self.instances.drain(INSTANCE_DRAIN_TIMEOUT).await;
    }

    /// Accepts a connection when there is space for it. Can be cancelled without losing one.
    async fn accept(self: &Arc<Self>, listener: &TcpListener) {
        if self.connections.available_permits() == 0
            && let Some(count) = self.warnings.full.record()
        {
            tracing::warn!(count, "--max-connections is reached: new connections wait");
        }
        let permit = Arc::clone(&self.connections).acquire_owned().await.ok();
        match listener.accept().await {
            Ok((stream, peer)) => self.begin(stream, peer, permit),
            Err(error) => {
                if let Some(count) = self.warnings.accept.record() {
                    tracing::warn!(error = error_chain(&error), count, "cannot accept connections");
                }
                sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }

    /// Serves a connection, or refuses it if its address has too many.
    fn begin(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, permit: Option<OwnedSemaphorePermit>) {
        let Some(of_address) = self.connections_by_address.try_acquire(peer.ip().into()) else {
            self.metrics.connections_refused.inc();
            if let Some(count) = self.warnings.refused.record() {
                tracing::warn!(count, address = %peer.ip(), "connections refused: too many from one address");
            }
            let _ = refuse(stream);
            return;
        };
        if let Err(error) = prepare_response_socket(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        let server = Arc::clone(self);
        let connection = Connection {
            peer,
            draining: self.draining.clone(),
            aborted: self.aborted.child_token(),
            has_request: AtomicBool::new(false),
        };
        self.tasks.spawn(async move {
            server.metrics.connections.inc();
            let aborted = connection.aborted.clone();
            let _ = aborted.run_until_cancelled(server.serve_connection(stream, Arc::new(connection))).await;
            server.metrics.connections.dec();
            drop((permit, of_address));
        });
    }

    async fn serve_connection(self: &Arc<Self>, stream: TcpStream, connection: Arc<Connection>) {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(WRITE_TIMEOUT));
        let service = service_fn(|request| {
            let response = Arc::clone(self).respond(request, Arc::clone(&connection));
            async { Ok::<_, Infallible>(response.await) }
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
            sleep(DRAIN_READ_TIMEOUT).await;
        };
        let served = tokio::select! {
            biased;
            served = &mut serving => Some(served),
            // hyper closes a connection at once of which it has read nothing.
            () = read_time => {
                serving.as_mut().graceful_shutdown();
                if connection.has_request.load(Ordering::Acquire) {
                    Some(serving.await)
                } else {
                    timeout(DRAIN_READ_TIMEOUT, serving).await.ok()
                }
            }
        };
        if let Some(Err(error)) = served {
            tracing::debug!(error = error_chain(&error), "a connection failed");
        }
    }
}

/// Sends an error to a client whose connection is not served.
fn refuse(stream: TcpStream) -> io::Result<()> {
    // Not through the runtime, which does not know yet that the stream is writable.
    let mut stream = stream.into_std()?;
    let body = ServerError::TooManyRequests.body();
    let (id, length) = (Uuid::now_v7(), body.len());
    write!(
        stream,
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
         retry-after: 1\r\n{REQUEST_ID}: {id}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    stream.shutdown(Shutdown::Write)?;
    // The kernel resets a connection that is closed with unread bytes, and the client may lose the response.
    stream.read(&mut [0; 4096]).map(drop)
}

/// What the requests of a connection know of it.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// The server drains: responses are the last ones of their connections.
    pub(super) draining: CancellationToken,
    /// Closes the connection, whatever it is doing.
    pub(super) aborted: CancellationToken,
    /// True from the head of a request to the end of its response.
    pub(super) has_request: AtomicBool,
}
