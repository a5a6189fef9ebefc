//! An HTTP proxy that tunnels `CONNECT` requests and records them.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional},
    net::TcpStream,
};

use crate::loopback::{ANY_PORT, TcpServer};

/// A running proxy, stopped when it is dropped.
#[derive(Debug)]
pub struct HttpProxy {
    server: TcpServer,
    heads: Arc<Mutex<Vec<String>>>,
}

impl HttpProxy {
    /// Starts a proxy that accepts every request, or answers each with 403.
    pub async fn start(accepts: bool) -> Result<Self> {
        Self::with(accepts, None).await
    }

    /// Starts a proxy that connects to this address whatever it is asked for.
    pub async fn to(origin: SocketAddr) -> Result<Self> {
        Self::with(true, Some(origin)).await
    }

    async fn with(accepts: bool, origin: Option<SocketAddr>) -> Result<Self> {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let recorded = Arc::clone(&heads);
        let serve = move |stream| serve(stream, accepts, origin, Arc::clone(&recorded));
        Ok(Self { server: TcpServer::start(ANY_PORT, serve).await?, heads })
    }

    /// Its URL, with a user and a password.
    pub fn url(&self) -> String {
        format!("http://user:pass@{}", self.server.address())
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves one connection; `None` if either side closes it early.
async fn serve(
    stream: TcpStream,
    accepts: bool,
    origin: Option<SocketAddr>,
    heads: Arc<Mutex<Vec<String>>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let target = head.split(' ').nth(1)?.to_owned();
    heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    if !accepts {
        return stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await.ok();
    }
    let mut origin = match origin {
        Some(origin) => TcpStream::connect(origin).await.ok()?,
        None => TcpStream::connect(target).await.ok()?,
    };
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    copy_bidirectional(&mut stream, &mut origin).await.ok().map(drop)
}
