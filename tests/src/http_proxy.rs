//! An HTTP proxy that tunnels `CONNECT` requests and records them.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A running proxy, stopped when it is dropped.
#[derive(Debug)]
pub struct HttpProxy {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl HttpProxy {
    /// Starts a proxy that accepts every request, or answers each with 403.
    pub async fn start(accepts: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (port, heads) = (listener.local_addr()?.port(), Arc::<Mutex<Vec<String>>>::default());
        let recorded = Arc::clone(&heads);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, accepts, Arc::clone(&recorded)));
            }
        });
        Ok(Self { port, heads, task })
    }

    /// Its URL, with a user and a password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://user:pass@127.0.0.1:{}", self.port)
    }

    /// The heads of all requests so far.
    #[must_use]
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one connection; `None` if either side closes it early.
async fn serve(stream: TcpStream, accepts: bool, heads: Arc<Mutex<Vec<String>>>) -> Option<()> {
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
    let mut origin = TcpStream::connect(target).await.ok()?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    copy_bidirectional(&mut stream, &mut origin).await.ok().map(drop)
}
