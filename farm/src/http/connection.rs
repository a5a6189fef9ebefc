//! The farm's connections, with `TCP_NODELAY` and `TCP_QUICKACK`.
//!
//! A caller that writes the head and the body of a job separately, without `TCP_NODELAY` as Spin does, sends the
//! body when the head is acknowledged. Linux delays that by 40 ms on a connection that is kept alive.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::serve::Listener;
use rustix::net::sockopt::set_tcp_quickack;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::sleep,
};

use platen_program::{ACCEPT_RETRY_INTERVAL, RepeatedWarning, prepare_response_socket};

static ACCEPT_FAILED: RepeatedWarning = RepeatedWarning::new();

/// Accepts [`Connection`]s.
pub(super) struct Connections(pub(super) TcpListener);

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = loop {
            match self.0.accept().await {
                Ok(accepted) => break accepted,
                Err(error) => {
                    if let Some(count) = ACCEPT_FAILED.record() {
                        tracing::warn!(%error, count, "cannot accept a connection");
                    }
                    sleep(ACCEPT_RETRY_INTERVAL).await;
                }
            }
        };
        if let Err(error) = prepare_response_socket(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        (Connection(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

pub(super) struct Connection(TcpStream);

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.0).poll_read(context, buffer))?;
        // The kernel leaves this mode after a while, see tcp(7). Without it the job is only later.
        let _ = set_tcp_quickack(&self.0, true);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_quickack;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn data_is_acknowledged_at_once_on_a_connection_that_is_kept_alive() {
        let mut listener = Connections(TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut connection, _) = listener.accept().await;
        let mut buffer = [0; 16];
        for _ in 0..20 {
            client.write_all(b"job").await.unwrap();
            assert_eq!(connection.read(&mut buffer).await.unwrap(), 3);
            assert!(tcp_quickack(&connection.0).unwrap());
            connection.write_all(b"file").await.unwrap();
            client.read_exact(&mut buffer[..4]).await.unwrap();
        }
    }
}
