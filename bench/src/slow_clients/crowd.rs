//! The slow connections.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use platen_tests::client::RENDER;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::load::client::{Request, unknown_key};

const BYTE_INTERVAL: Duration = Duration::from_secs(1);
/// Long enough that thousands of refused connections do not use up the cores.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(5);
/// An announced body: small enough to be read before the key is looked up.
const SMALL_BODY_BYTES: usize = 100_000;
const LARGE_BODY_BYTES: usize = 32 * 1024 * 1024;
/// Of a large body, sent at once.
const FIRST_BYTES: usize = 64 * 1024;
/// The server does not limit the connections of this many addresses to fewer than the slow ones together.
const FEW: usize = 4;
/// The receive buffer of a slow reader, so that the file stays in the server.
const RECEIVE_BYTES: u32 = 16 * 1024;

/// A kind of slow connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Heads,
    JunkKeyBodies,
    UnknownKeyBodies,
    GoodKeyBodies,
    LargeBodies,
    LargeUnknownKeyBodies,
    Idle,
    Lingering,
    Readers,
}

/// From where connections come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addresses {
    One,
    Few,
}

impl Addresses {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "one address",
            Self::Few => "a few addresses",
        }
    }

    fn address(self, number: usize) -> Ipv4Addr {
        let last = match self {
            Self::One => 0,
            Self::Few => u8::try_from(number % FEW).unwrap_or_default(),
        };
        Ipv4Addr::new(127, 0, 0, 2 + last)
    }
}

impl Kind {
    pub(super) const ALL: &'static [Self] = &[
        Self::Heads,
        Self::JunkKeyBodies,
        Self::UnknownKeyBodies,
        Self::GoodKeyBodies,
        Self::LargeBodies,
        Self::LargeUnknownKeyBodies,
        Self::Idle,
        Self::Lingering,
        Self::Readers,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Heads => "slow heads",
            Self::JunkKeyBodies => "slow bodies with a junk key",
            Self::UnknownKeyBodies => "slow bodies with an unknown key",
            Self::GoodKeyBodies => "slow bodies with a good key",
            Self::LargeBodies => "announced 32 MiB with a good key",
            Self::LargeUnknownKeyBodies => "announced 32 MiB with an unknown key",
            Self::Idle => "idle connections",
            Self::Lingering => "bytes after an answer",
            Self::Readers => "slow readers of 50 MiB",
        }
    }

    pub(super) fn connections(self, percent: usize) -> usize {
        let all = match self {
            Self::Idle => 2_000,
            Self::Heads => 500,
            Self::LargeBodies | Self::LargeUnknownKeyBodies => 16,
            _ => 200,
        };
        (all * percent / 100).max(1)
    }
}

/// What opens slow connections.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    pub(super) address: SocketAddr,
    pub(super) good_key: String,
    /// The key of an account whose files have 50 MiB.
    pub(super) reader_key: String,
}

/// Slow connections, which are closed when the value is dropped.
pub(super) struct SlowConnections {
    _tasks: JoinSet<()>,
    open: Arc<AtomicUsize>,
    reconnects: Arc<AtomicBool>,
}

impl SlowConnections {
    /// How many the server has not closed.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    pub(super) fn stop_reconnecting(&self) {
        self.reconnects.store(false, Ordering::SeqCst);
    }
}

impl Crowd {
    pub(super) fn open(&self, kinds: &[Kind], percent: usize, addresses: Addresses) -> SlowConnections {
        let (mut tasks, open) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
        let reconnects = Arc::new(AtomicBool::new(true));
        let connections = kinds.iter().flat_map(|kind| (0..kind.connections(percent)).map(|_| *kind));
        for (number, kind) in connections.enumerate() {
            let (crowd, open, reconnects) = (self.clone(), Arc::clone(&open), Arc::clone(&reconnects));
            tasks.spawn(async move {
                // Spread over a second.
                sleep(Duration::from_micros(200 * (number as u64 % 5_000))).await;
                while reconnects.load(Ordering::SeqCst) {
                    if let Ok(stream) = crowd.connect(kind, addresses.address(number)).await {
                        open.fetch_add(1, Ordering::SeqCst);
                        let _ = crowd.stay(kind, stream).await;
                        open.fetch_sub(1, Ordering::SeqCst);
                    }
                    sleep(RECONNECT_INTERVAL).await;
                }
            });
        }
        SlowConnections { _tasks: tasks, open, reconnects }
    }

    async fn connect(&self, kind: Kind, source: Ipv4Addr) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if kind == Kind::Readers {
            socket.set_recv_buffer_size(RECEIVE_BYTES)?;
        }
        socket.bind((source, 0).into())?;
        Ok(socket.connect(self.address).await?)
    }

    /// Returns when the server has closed the connection.
    async fn stay(&self, kind: Kind, mut stream: TcpStream) -> Result<()> {
        let unknown_key = unknown_key();
        let (key, length) = match kind {
            Kind::Heads => {
                stream.write_all(b"POST /v1/render HTTP/1.1\r\nhost: a\r\nx-slow: ").await?;
                return trickle(stream, BYTE_INTERVAL).await;
            }
            Kind::Idle => return until_closed(stream).await,
            Kind::JunkKeyBodies => ("junk", SMALL_BODY_BYTES),
            Kind::UnknownKeyBodies => (unknown_key.as_str(), SMALL_BODY_BYTES),
            Kind::GoodKeyBodies => (self.good_key.as_str(), SMALL_BODY_BYTES),
            Kind::LargeBodies => (self.good_key.as_str(), LARGE_BODY_BYTES),
            Kind::LargeUnknownKeyBodies => (unknown_key.as_str(), LARGE_BODY_BYTES),
            Kind::Lingering => {
                let request = Request { path: "/nowhere", ..Request::post(RENDER, "junk", "") };
                stream.write_all(request.head(self.address, LARGE_BODY_BYTES).as_bytes()).await?;
                return trickle(stream, BYTE_INTERVAL).await;
            }
            Kind::Readers => {
                let request = Request::post(RENDER, &self.reader_key, r#"{"html":"x"}"#);
                stream.write_all(&request.bytes(self.address)).await?;
                stream.read_exact(&mut [0; 12]).await?;
                return read_slowly(stream).await;
            }
        };
        let head = Request::post(RENDER, key, "").head(self.address, length);
        stream.write_all(head.as_bytes()).await?;
        if length == LARGE_BODY_BYTES {
            stream.write_all(&vec![b' '; FIRST_BYTES]).await?;
        }
        trickle(stream, BYTE_INTERVAL).await
    }
}

/// Sends a byte at each interval until the connection is closed.
async fn trickle(stream: TcpStream, interval: Duration) -> Result<()> {
    let (mut reader, mut writer) = stream.into_split();
    let mut buffer = [0; 1024];
    loop {
        match timeout(interval, reader.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return Ok(()),
            // The answer; the sender continues as if it had not seen it.
            Ok(Ok(_)) => {}
            Err(_) => writer.write_all(b"x").await.context("the server closed the connection")?,
        }
    }
}

async fn until_closed(mut stream: TcpStream) -> Result<()> {
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// Reads a few bytes at each interval.
async fn read_slowly(mut stream: TcpStream) -> Result<()> {
    while stream.read(&mut [0; 16]).await? > 0 {
        sleep(BYTE_INTERVAL).await;
    }
    Ok(())
}
