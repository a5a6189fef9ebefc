//! A small HTTP server on 127.0.0.1 whose handler may also break the connection off.
//!
//! Invariant: it and every connection it holds are gone once it is dropped.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

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
use tokio::{
    net::{TcpListener, TcpSocket},
    task::{JoinHandle, JoinSet},
};

/// The handler, or a body, gave up: the connection is closed where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakOff;

impl std::fmt::Display for BreakOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken off on purpose")
    }
}

impl std::error::Error for BreakOff {}

/// A body of an answer.
pub type Body = UnsyncBoxBody<Bytes, BreakOff>;

/// A body that is there already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body that comes in pieces; an error breaks it off.
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
    ///
    /// # Errors
    /// When no port is to be had.
    pub async fn start<H, F>(handler: H) -> Result<Self>
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Result<Response<Body>, BreakOff>> + Send + 'static,
    {
        Self::start_at(([127, 0, 0, 1], 0).into(), handler).await
    }

    /// Serves `handler` on this address.
    ///
    /// # Errors
    /// When it is taken.
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
                let service = service_fn(handler.clone());
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, task })
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

/// The end of a body that breaks off. What came before it is given time to leave, so that it is a
/// body broken off and not an answer never begun.
///
/// # Errors
/// Always.
pub async fn break_off_soon() -> Result<Bytes, BreakOff> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Err(BreakOff)
}

/// A port of 127.0.0.1 on which nobody listens: bound for as long as this is held, so that no other
/// test gets it.
#[derive(Debug)]
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// Takes one.
    ///
    /// # Errors
    /// When no port is to be had.
    pub fn hold() -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(([127, 0, 0, 1], 0).into())?;
        Ok(Self(socket))
    }

    /// Where nobody listens.
    ///
    /// # Errors
    /// When the socket cannot tell.
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
                    let pieces = half.chain(futures::stream::once(break_off_soon()));
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
        tokio::task::yield_now().await;
        assert!(reqwest::get(format!("http://{address}/whole")).await.is_err());
    }
}
