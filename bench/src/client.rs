//! An HTTP/1.1 client that costs little CPU time.
//!
//! Invariant: a request is sent once. A connection that was idle for [`MAX_IDLE`] is replaced, because the server
//! may close it at the moment in which it is used.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use platen_harness::client::Answer;
use platen_shared::key::{ApiKey, RANDOM_BYTES};
use tokio::{net::TcpStream, task::JoinHandle};

/// Less than any keep-alive timeout of a server.
const MAX_IDLE: Duration = Duration::from_secs(2);

/// A request of the API.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) authorization: Arc<str>,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl Request {
    /// A `POST` of JSON with this key.
    pub(crate) fn post(path: &'static str, key: &str, body: impl Into<Bytes>) -> Self {
        Self {
            method: "POST",
            path,
            authorization: format!("Bearer {key}").into(),
            content_type: "application/json",
            body: body.into(),
        }
    }

    /// The bytes as they are sent.
    pub(crate) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let Self { method, path, authorization, content_type, body } = self;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: {authorization}\r\n\
             content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

/// One caller with at most one connection.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<hyper::Result<()>>,
    used: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }

    async fn connection(&self) -> Result<Connection> {
        let stream = connect(self.address).await?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        Ok(Connection { sender, driver: tokio::spawn(driver), used: Instant::now() })
    }

    /// Sends a request and reads the whole answer. A future that is dropped closes the connection.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<Answer> {
        let usable = |it: &Connection| it.used.elapsed() < MAX_IDLE && !it.sender.is_closed();
        let mut connection = match self.connection.take().filter(usable) {
            Some(connection) => connection,
            None => self.connection().await?,
        };
        connection.sender.ready().await?;
        let head = http::Request::builder()
            .method(request.method)
            .uri(request.path)
            .header("host", self.address.to_string())
            .header("authorization", &*request.authorization)
            .header("content-type", request.content_type);
        let response = connection.sender.send_request(head.body(Full::new(request.body.clone()))?);
        let (head, body) = response.await.context("no answer")?.into_parts();
        let status = head.status.as_u16();
        let body =
            body.collect().await.with_context(|| format!("the answer ({status}) broke off"))?.to_bytes();
        connection.used = Instant::now();
        self.connection = Some(connection);
        Ok(Answer { status, headers: head.headers, body })
    }
}

/// A connection that sends without delay.
pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A key with a valid checksum that no account has.
pub(crate) fn unknown_key() -> String {
    ApiKey::from_random([7; RANDOM_BYTES]).expose().to_owned()
}
