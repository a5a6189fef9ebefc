//! The farm's connections, with `TCP_NODELAY` and `TCP_QUICKACK`.
//!
//! A caller that writes the head and the body of a job separately, without `TCP_NODELAY` as Spin does, sends the
//! body when the head is acknowledged. Linux delays that by 40 ms on a connection that is kept alive.

use std::{io, net::SocketAddr, os::fd::AsFd as _};

use axum::serve::Listener;
use platen_program::prepare_response_socket;
use rustix::net::sockopt::set_tcp_quickack;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::io::InspectReader;

pub(super) struct Connections(pub(super) TcpListener);

/// A connection that calls a function after each read.
type Connection = InspectReader<TcpStream, Box<dyn FnMut(&[u8]) + Send>>;

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = platen_program::accept(&self.0).await;
        if let Err(error) = prepare_response_socket(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        let socket = stream.as_fd().try_clone_to_owned();
        let acknowledge = move |_: &[u8]| {
            // The kernel leaves this mode after a while, see tcp(7). Without it the job is only later.
            let _ = socket.as_ref().map(|socket| set_tcp_quickack(socket, true));
        };
        (InspectReader::new(stream, Box::new(acknowledge)), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
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
            assert!(tcp_quickack(connection.get_ref()).unwrap());
            connection.write_all(b"file").await.unwrap();
            client.read_exact(&mut buffer[..4]).await.unwrap();
        }
    }
}
