//! Accepts connections, and drains them.
//!
//! Invariant: a connection that the kernel has accepted before the server drains gets a response to its request.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use platen_program::{ACCEPT_RETRY_INTERVAL, error_chain, prepare_response_socket, startup::StopSignals};
use platen_shared::wire::REQUEST_ID;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::{Server, connection::Connection, server_error::ServerError};

/// When no connection arrives for this time, the backlog is empty.
const BACKLOG_TIMEOUT: Duration = Duration::from_millis(50);
/// Limit for emptying the backlog while new connections arrive.
const MAX_BACKLOG_TIME: Duration = Duration::from_secs(1);
/// For connections to be closed that did not end in time.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);
/// What instances have to do after the last response is usually one statement. A job whose connection was aborted has
/// two seconds to be cancelled before.
const MIN_INSTANCE_DRAIN_TIME: Duration = Duration::from_secs(3);
const MAX_INSTANCE_DRAIN_TIME: Duration = Duration::from_secs(10);

impl Server {
    /// Serves until the first signal, and returns when the requests in flight have ended or were aborted.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: &StopSignals) {
        let accepting = async {
            loop {
                self.accept(&listener).await;
            }
        };
        stop.first.run_until_cancelled(accepting).await;
        let deadline = Instant::now() + self.limits.drain_timeout;
        self.draining.cancel();
        let draining = async {
            // What the kernel has accepted gets a response.
            let backlog = async { while timeout(BACKLOG_TIMEOUT, self.accept(&listener)).await.is_ok() {} };
            let _ = timeout(MAX_BACKLOG_TIME, backlog).await;
            drop(listener);
            self.tasks.close();
            self.tasks.wait().await;
        };
        let drained = stop.second.run_until_cancelled(timeout(self.limits.drain_timeout, draining)).await;
        if !matches!(drained, Some(Ok(()))) {
            tracing::warn!(connections = self.tasks.len(), "aborting requests that did not end in time");
            self.aborted.cancel();
            self.tasks.close();
            let _ = timeout(ABORT_TIMEOUT, self.tasks.wait()).await;
        }
        let time_left = deadline.saturating_duration_since(Instant::now());
        self.instances.drain(time_left.clamp(MIN_INSTANCE_DRAIN_TIME, MAX_INSTANCE_DRAIN_TIME)).await;
    }

    /// Accepts a connection when there is space for it. Can be cancelled without losing one.
    async fn accept(self: &Arc<Self>, listener: &TcpListener) {
        if self.connections.available_permits() == 0
            && let Some(count) = self.warnings.full.record()
        {
            tracing::warn!(count, "--max-connections is reached: new connections wait");
        }
        let Ok(place) = Arc::clone(&self.connections).acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(count) = self.warnings.accept.record() {
                    tracing::warn!(error = error_chain(&error), count, "cannot accept connections");
                }
                return sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        };
        let mut share = self.connections_by_address.share(peer.ip().into());
        if share.grow(1).is_err() {
            self.metrics.connections_refused.inc();
            if let Some(count) = self.warnings.refused.record() {
                tracing::warn!(count, address = %peer.ip(), "connections refused: too many from one address");
            }
            let _ = refuse(stream);
            return;
        }
        if let Err(error) = prepare_response_socket(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        let server = Arc::clone(self);
        self.tasks.spawn(async move {
            server.metrics.connections.inc();
            server.serve_connection(stream, peer).await;
            server.metrics.connections.dec();
            drop((place, share));
        });
    }

    async fn serve_connection(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let connection = Connection::new(peer, self.draining.clone(), self.aborted.child_token());
        let connection = Arc::new(connection);
        let respond = |request| Arc::clone(self).respond(request, Arc::clone(&connection));
        connection.serve(stream, respond).await;
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
