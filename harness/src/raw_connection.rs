//! A connection whose bytes a test writes itself, as a client library would not.

use std::{
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    client::{Answer, RENDER, Target},
    wait::MAX_WAIT,
};

#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
    /// What was received after the last answer.
    received: Vec<u8>,
}

impl RawConnection {
    pub async fn open(target: &Target) -> Result<Self> {
        Ok(Self { stream: TcpStream::connect(authority(target)).await?, received: Vec::new() })
    }

    /// Connects to a server of this machine from the address 127.0.0.`last`.
    pub async fn open_from(target: &Target, last: u8) -> Result<Self> {
        let address: SocketAddr = authority(target).parse()?;
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into())?;
        Ok(Self { stream: socket.connect(address).await?, received: Vec::new() })
    }

    /// Connects and sends bytes on a thread of its own, so that nothing of this process comes between the two.
    pub async fn open_with(target: &Target, bytes: Vec<u8>) -> Result<Self> {
        let address: SocketAddr = authority(target).parse()?;
        let stream = spawn_blocking(move || -> io::Result<_> {
            let mut stream = std::net::TcpStream::connect(address)?;
            stream.write_all(&bytes)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        Ok(Self { stream: TcpStream::from_std(stream.await??)?, received: Vec::new() })
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        Ok(self.stream.write_all(bytes.as_ref()).await?)
    }

    /// Closes the sending side.
    pub async fn end(&mut self) -> Result<()> {
        Ok(self.stream.shutdown().await?)
    }

    /// Reads one answer with a `content-length`.
    pub async fn answer(&mut self) -> Result<Answer> {
        timeout(MAX_WAIT, self.read_answer()).await.context("no answer")?
    }

    async fn read_answer(&mut self) -> Result<Answer> {
        let head_end = loop {
            if let Some(end) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            self.receive().await?;
        };
        let head = String::from_utf8(self.received[..head_end].to_vec())?;
        let mut lines = head.lines();
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no status in {status_line:?}"))?;
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').with_context(|| format!("not a header: {line:?}"))?;
            headers.append(name.parse::<HeaderName>()?, HeaderValue::from_str(value.trim())?);
        }
        let length =
            headers.get("content-length").context("no content-length")?.to_str()?.parse::<usize>()?;
        let end = head_end + 4 + length;
        while self.received.len() < end {
            self.receive().await?;
        }
        let body = Bytes::copy_from_slice(&self.received[head_end + 4..end]);
        self.received.drain(..end);
        Ok(Answer { status, headers, body })
    }

    async fn receive(&mut self) -> Result<()> {
        let count = self.stream.read_buf(&mut self.received).await?;
        let received = String::from_utf8_lossy(&self.received);
        ensure!(count > 0, "the connection was closed after {received:?}");
        Ok(())
    }

    /// Waits until the server has closed the connection, and fails if it sends something before.
    pub async fn closed(&mut self) -> Result<()> {
        let mut rest = Vec::new();
        let read = timeout(MAX_WAIT, self.stream.read_to_end(&mut rest)).await;
        // A reset connection is closed as well.
        let _ = read.context("the server keeps the connection")?;
        self.received.append(&mut rest);
        let received = String::from_utf8_lossy(&self.received);
        ensure!(received.is_empty(), "the server sent {received:?}");
        Ok(())
    }
}

/// Host and port of the server of a target.
pub fn authority(target: &Target) -> &str {
    target.base_url.trim_start_matches("http://")
}

/// The head of a render with the target's key and these headers, each of which ends with a line break.
pub fn render_head(target: &Target, headers: &str) -> String {
    format!(
        "POST {RENDER} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\n{headers}\r\n",
        authority(target),
        target.key
    )
}
