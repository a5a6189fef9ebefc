//! Accepts connections, makes space for them, and drains.
//!
//! Invariant: a connection that the kernel has accepted before the server drains gets a response to its request.

use std::{
    convert::Infallible,
    io::{self, Read as _, Write as _},
    net::{Shutdown, SocketAddr},
    sync::Arc,
    time::Duration,
};

use platen_farm::{RepeatedWarning, prepare_response_socket};
use rustix::io::Errno;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    Server, client_socket,
    connections::Full,
    server_error::{self, ServerError},
};

/// After an error of `accept`, and while every connection has a request.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// When no connection arrives for this time, the backlog is empty.
const BACKLOG_TIMEOUT: Duration = Duration::from_millis(50);
/// Limit for emptying the backlog while new connections arrive.
const MAX_BACKLOG_TIME: Duration = Duration::from_secs(1);
/// For connections to be closed that did not end in time.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Acceptor {
    server: Arc<Server>,
    listener: TcpListener,
    /// Accepted, but there is no space for it yet.
    accepted: Option<(TcpStream, SocketAddr)>,
    tasks: TaskTracker,
    errors: RepeatedWarning,
    full: RepeatedWarning,
    refused: RepeatedWarning,
}

impl Acceptor {
    pub(super) fn new(server: Arc<Server>, listener: TcpListener) -> Self {
        Self {
            server,
            listener,
            accepted: None,
            tasks: TaskTracker::new(),
            errors: RepeatedWarning::default(),
            full: RepeatedWarning::default(),
            refused: RepeatedWarning::default(),
        }
    }

    /// Can be cancelled without losing a connection.
    pub(super) async fn accept_all(&mut self) -> Infallible {
        loop {
            self.accept().await;
        }
    }

    async fn accept(&mut self) {
        if self.accepted.is_none() {
            match self.listener.accept().await {
                Ok(accepted) => self.accepted = Some(accepted),
                Err(error) => return self.failed(&error).await,
            }
        }
        let Some((_, client)) = &self.accepted else { return };
        let client = *client;
        match self.server.connections.open(client.into()) {
            Ok(open) => {
                let Some((stream, _)) = self.accepted.take() else { return };
                if let Err(error) = prepare_response_socket(&stream) {
                    tracing::debug!(%error, "cannot set the options of a connection");
                }
                let (socket, unread) = client_socket::split(stream);
                // Before the task runs, which can take long on a busy machine.
                open.connection().set_unread(unread);
                self.tasks.spawn(Arc::clone(&self.server).serve_connection(socket, client, open));
            }
            Err(Full::Total) => {
                if let Some(count) = self.full.record() {
                    tracing::warn!(count, "no connection is idle: new ones wait");
                }
                sleep(RETRY_INTERVAL).await;
            }
            Err(Full::Share) => {
                self.server.metrics.connections_refused.inc();
                if let Some(count) = self.refused.record() {
                    let address = client.ip();
                    tracing::warn!(count, %address, "connections refused: too many from one address");
                }
                if let Some((stream, _)) = self.accepted.take() {
                    let _ = refuse(stream);
                }
            }
        }
    }

    async fn failed(&mut self, error: &io::Error) {
        let is_out_of_files = matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
        let max_connections = is_out_of_files.then(|| self.server.connections.lower_max());
        if let Some(count) = self.errors.record() {
            let error = error as &dyn std::error::Error;
            tracing::warn!(error, count, max_connections, "cannot accept connections");
        }
        sleep(RETRY_INTERVAL).await;
    }

    /// Accepts what the kernel has accepted, and waits for all requests, at most until `abort`.
    pub(super) async fn drain(mut self, drain_timeout: Duration, abort: &CancellationToken) {
        let deadline = Instant::now() + drain_timeout;
        let connections = Arc::clone(&self.server.connections);
        connections.drain();
        let backlog = async { while timeout(BACKLOG_TIMEOUT, self.accept()).await.is_ok() {} };
        let _ = abort.run_until_cancelled(timeout(MAX_BACKLOG_TIME, backlog)).await;
        let Self { listener, tasks, .. } = self;
        drop(listener);
        tasks.close();
        let ended = abort.run_until_cancelled(timeout_at(deadline, tasks.wait())).await;
        if !matches!(ended, Some(Ok(()))) {
            let count = connections.abort();
            tracing::warn!(connections = count, "aborting requests that did not end in time");
            let _ = timeout(ABORT_TIMEOUT, tasks.wait()).await;
        }
    }
}

/// Sends an error to a client whose connection is not served.
fn refuse(stream: TcpStream) -> io::Result<()> {
    // Not through the runtime, which does not know yet that the stream is writable.
    let mut stream = stream.into_std()?;
    let id = Uuid::now_v7().to_string();
    stream.write_all(&server_error::response_without_request(ServerError::TooManyRequests, &id))?;
    stream.shutdown(Shutdown::Write)?;
    // The kernel resets a connection that is closed with unread bytes, and the client may lose the response.
    stream.read(&mut [0; 4096]).map(drop)
}
