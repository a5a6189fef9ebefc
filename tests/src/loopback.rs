//! A small HTTP server on 127.0.0.1 whose handler may also break a connection off.
//!
//! Invariant: a dropped server has no listener and no connection left.

use std::{convert::Infallible, net::SocketAddr};

use anyhow::Result;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpSocket},
    task::{JoinHandle, JoinSet},
};

const MAX_UNSENT_BYTES: u32 = 256 * 1024;

/// The error of a handler or a body that closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakOff;

impl std::fmt::Display for BreakOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken off on purpose")
    }
}

impl std::error::Error for BreakOff {}

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, BreakOff>;

/// A complete body.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body that is sent in pieces; an error breaks it off.
pub fn streamed(pieces: impl Stream<Item = Result<Bytes, BreakOff>> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// A running server.
#[derive(Debug)]
pub struct Loopback {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Loopback {
    /// Serves `handler` on a free port.
    pub async fn start<H, F>(handler: H) -> Result<Self>
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Result<Response<Body>, BreakOff>> + Send + 'static,
    {
        Self::start_at(([127, 0, 0, 1], 0).into(), handler).await
    }

    /// Serves `handler` on this address.
    pub async fn start_at<H, F>(address: SocketAddr, handler: H) -> Result<Self>
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Result<Response<Body>, BreakOff>> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // Aborting this task drops the set, which aborts every connection.
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let _ = stream.set_nodelay(true);
                // As the farm, so that a slow client takes as much of the kernel's memory.
                let _ = SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
                let service = service_fn(handler.clone());
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, task })
    }

    /// Its URL, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.task.abort();
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
        socket.bind(([127, 0, 0, 1], 0).into())?;
        Ok(Self(socket))
    }

    /// Its URL.
    pub fn url(&self) -> Result<String> {
        Ok(format!("http://{}", self.0.local_addr()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_answers_breaks_off_and_ends() {
        let server = Loopback::start(|request| async move {
            match request.uri().path() {
                "/whole" => Ok(Response::new(full("whole"))),
                "/half" => {
                    let half = futures::stream::iter([Ok(Bytes::from_static(b"half"))]);
                    let pieces = half.chain(futures::stream::once(break_off()));
                    Ok(Response::builder().header("content-length", 8).body(streamed(pieces)).unwrap())
                }
                _ => Err(BreakOff),
            }
        })
        .await
        .unwrap();
        let get = |path: &str| reqwest::get(format!("http://{}{path}", server.address()));
        assert_eq!(get("/whole").await.unwrap().text().await.unwrap(), "whole");
        assert!(get("/half").await.unwrap().bytes().await.is_err());
        assert!(get("/none").await.is_err());
        let address = server.address();
        drop(server);
        let is_gone =
            async || Ok(reqwest::get(format!("http://{address}/whole")).await.is_err().then_some(()));
        crate::wait::until_some("no listener", is_gone).await.unwrap();
    }
}
