//! A TCP proxy that stands for a long link: it delays what it passes on, and counts connections and round trips.
//!
//! Invariant: bytes of one direction of a connection stay in order, so a chunk that is late delays those after it, as a lost
//! packet does. A connection costs one more round trip before its first byte, as the handshake of TCP does.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use crate::loopback::{ANY_PORT, TcpServer};

/// The least time after which Linux sends a packet again that was not acknowledged, beside the round trip.
const MIN_RETRANSMISSION_TIME: Duration = Duration::from_millis(200);
/// Chunks on the way in one direction of a connection.
const MAX_CHUNKS: usize = 1024;
const CHUNK_BYTES: usize = 64 * 1024;

/// A link.
#[derive(Debug, Clone, Copy, Default)]
pub struct Link {
    /// The time from a byte to the first byte of its answer.
    pub round_trip: Duration,
    /// How many chunks of 100 come as late as a lost packet.
    pub loss_percent: u8,
}

#[derive(Debug)]
struct State {
    origin: SocketAddr,
    link: Link,
    connections: AtomicU64,
    round_trips: AtomicU64,
    /// A text whose requests are held back.
    held: watch::Sender<Option<&'static str>>,
}

/// A running proxy, stopped when it is dropped.
#[derive(Debug)]
pub struct DelayProxy {
    server: TcpServer,
    state: Arc<State>,
}

impl DelayProxy {
    /// Starts a proxy before this address.
    pub async fn start(origin: SocketAddr, link: Link) -> Result<Self> {
        let (connections, round_trips) = (AtomicU64::default(), AtomicU64::default());
        let held = watch::Sender::new(None);
        let state = Arc::new(State { origin, link, connections, round_trips, held });
        let shared = Arc::clone(&state);
        let serve = move |stream| Arc::clone(&shared).serve(stream);
        Ok(Self { server: TcpServer::start(ANY_PORT, serve).await?, state })
    }

    /// Its URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The number of connections that were accepted.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How often a client began to send, on a new connection or after an answer. What is held back does not count.
    pub fn round_trips(&self) -> u64 {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    /// Holds requests back in which this text is, until this is called with `None`. The other requests of their connections
    /// wait for them.
    pub fn hold(&self, text: Option<&'static str>) {
        self.state.held.send_replace(text);
    }
}

impl State {
    /// Serves one connection; `None` if the origin cannot be reached.
    async fn serve(self: Arc<Self>, client: TcpStream) -> Option<()> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let open = Instant::now() + self.link.round_trip;
        let origin = TcpStream::connect(self.origin).await.ok()?;
        for stream in [&client, &origin] {
            stream.set_nodelay(true).ok()?;
        }
        let (from_client, to_client) = client.into_split();
        let (from_origin, to_origin) = origin.into_split();
        // Whether the client has received something since it sent the last time.
        let answered = AtomicBool::new(true);
        tokio::join!(
            self.pass(from_client, to_origin, open, &answered, true),
            self.pass(from_origin, to_client, open, &answered, false)
        );
        Some(())
    }

    /// Waits for as long as a request is held back.
    async fn until_released(&self, request: &[u8]) {
        let mut held = self.held.subscribe();
        let _ = held.wait_for(|text| !text.is_some_and(|text| contains(request, text.as_bytes()))).await;
    }

    /// Passes one direction on, until either side closes it.
    async fn pass(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        open: Instant,
        answered: &AtomicBool,
        is_request: bool,
    ) {
        let (sender, mut chunks) = mpsc::channel::<(Instant, Vec<u8>)>(MAX_CHUNKS);
        let read = async move {
            let mut buffer = vec![0; CHUNK_BYTES];
            while let Ok(length @ 1..) = from.read(&mut buffer).await {
                let chunk = buffer[..length].to_vec();
                if is_request {
                    self.until_released(&chunk).await;
                    if answered.swap(false, Ordering::SeqCst) {
                        self.round_trips.fetch_add(1, Ordering::SeqCst);
                    }
                } else {
                    answered.store(true, Ordering::SeqCst);
                }
                let mut at = Instant::now().max(open) + self.link.round_trip / 2;
                if rand::random_range(0..100) < self.link.loss_percent {
                    at += self.link.round_trip + MIN_RETRANSMISSION_TIME;
                }
                if sender.send((at, chunk)).await.is_err() {
                    return;
                }
            }
        };
        let write = async move {
            while let Some((at, chunk)) = chunks.recv().await {
                sleep_until(at).await;
                if to.write_all(&chunk).await.is_err() {
                    return;
                }
            }
            let _ = to.shutdown().await;
        };
        tokio::join!(read, write);
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
