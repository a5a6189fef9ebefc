//! Small servers on 127.0.0.1: of TCP, and of HTTP with a handler that may also break a connection off.
//!
//! Invariant: a dropped server has no listener and no connection left.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};

const MAX_UNSENT_BYTES: u32 = 256 * 1024;

/// A free port that a program of the same user may listen on with `SO_REUSEPORT` while the socket exists.
pub fn reserve_port() -> Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&ANY_PORT.into())?;
    let address = socket.local_addr()?.as_socket().context("an address")?;
    Ok((socket, address))
}

/// The error of a handler or a body that closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakOff;

impl std::fmt::Display for BreakOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken off on purpose")
    }
}

impl std::error::Error for BreakOff {}

pub type Body = UnsyncBoxBody<Bytes, BreakOff>;

/// A complete body.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body that is sent in pieces; an error breaks it off.
pub fn streamed(pieces: impl Stream<Item = Result<Bytes, BreakOff>> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// A TCP server on 127.0.0.1.
#[derive(Debug)]
pub struct TcpServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl TcpServer {
    /// Serves each connection, on a free port if that of the address is 0.
    pub async fn start<F>(
        address: SocketAddr,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Result<Self>
    where
        F: Future + Send + 'static,
    {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // Aborting this task drops the set, which aborts every connection.
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let served = serve(stream);
                connections.spawn(async move { drop(served.await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A free port of 127.0.0.1.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[derive(Debug)]
pub struct Loopback(TcpServer);

impl Loopback {
    /// Serves `handler` on a free port.
    pub async fn start<H, F>(handler: H) -> Result<Self>
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Result<Response<Body>, BreakOff>> + Send + 'static,
    {
        Self::start_at(ANY_PORT, handler).await
    }

    /// Serves `handler` on this address.
    pub async fn start_at<H, F>(address: SocketAddr, handler: H) -> Result<Self>
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Result<Response<Body>, BreakOff>> + Send + 'static,
    {
        let server = TcpServer::start(address, move |stream| {
            let _ = stream.set_nodelay(true);
            // As the farm, so that a slow client takes as much of the kernel's memory.
            let _ = SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
            let handler = service_fn(handler.clone());
            async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                builder.serve_connection(TokioIo::new(stream), handler).await
            }
        });
        server.await.map(Self)
    }

    /// Its URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.0.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}

/// The end of a body that breaks off. The server writes what came before it to the socket first, because a
/// body that is not ready makes it flush.
pub async fn break_off() -> Result<Bytes, BreakOff> {
    tokio::task::yield_now().await;
    Err(BreakOff)
}

/// A port of 127.0.0.1 without a listener. It is bound as long as the value exists, so no other test gets it.
#[derive(Debug)]
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// Binds a port.
    pub fn hold() -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(ANY_PORT)?;
        Ok(Self(socket))
    }

    pub fn url(&self) -> Result<String> {
        Ok(format!("http://{}", self.0.local_addr()?))
    }
}
