//! The clients beside the good one.

use std::{
    cell::RefCell,
    net::{Ipv4Addr, SocketAddr},
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::Result;
use bytes::Bytes;
use platen_harness::client::RENDER;
use platen_shared::key::{ApiKey, RANDOM_BYTES};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::{JoinHandle, spawn_local},
    time::{sleep, timeout},
};

use super::{Answers, render_request};
use crate::{
    callers::RECONNECT_INTERVAL,
    client::{Client, Request, connect},
    costly,
};

/// The time between the bytes that a slow client sends.
const BYTE_INTERVAL: Duration = Duration::from_secs(1);
/// The time before a client whose connection was closed opens another one. Long enough that closed connections do not use up the cores.
const SLOW_RECONNECT_INTERVAL: Duration = Duration::from_secs(5);
/// Small enough to be read before the key is looked up.
const SMALL_BODY_BYTES: usize = 100_000;
const LARGE_BODY_BYTES: usize = 32 * 1024 * 1024;
/// The part of a large body that is sent at once.
const FIRST_BYTES: usize = 16 * 1024;
/// The server does not limit the connections of this many addresses to fewer than there are clients.
const ADDRESSES: usize = 4;

/// What the other clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// They send uploads, heads and bodies slowly: so many of each.
    Slow { uploads: usize, heads: usize, bodies: usize },
    /// They send the next request as soon as they have an answer.
    Retrying { clients: usize },
    /// Requests from one address, with a new key each time, which no account has.
    BadKeys { connections: usize },
    /// They send a body that costs much to judge as soon as they have an answer.
    Costly { clients: usize, caller: Caller },
}

/// Whose key comes with a costly body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    WithoutKey,
    UnknownKey,
    WithoutQuota,
}

/// The other clients.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    pub(super) behaviour: Behaviour,
    pub(super) address: SocketAddr,
    /// A key of another account than the good client's.
    pub(super) key: String,
}

impl Behaviour {
    /// The number of clients.
    pub(super) fn clients(self) -> usize {
        match self {
            Self::Slow { uploads, heads, bodies } => uploads + heads + bodies,
            Self::Retrying { clients } | Self::Costly { clients, .. } => clients,
            Self::BadKeys { connections } => connections,
        }
    }

    /// The statuses that these clients may get.
    pub(super) fn expected(self) -> &'static [&'static str] {
        match self {
            Self::Slow { .. } => &[],
            Self::Retrying { .. } => &["200", "503"],
            Self::Costly { caller: Caller::WithoutQuota, .. } => &["400"],
            Self::BadKeys { .. } | Self::Costly { .. } => &["401"],
        }
    }
}

impl Crowd {
    /// Starts the clients. They begin nothing after this instant, and end when they have their last answer, or when the server
    /// has closed the connections of slow ones.
    pub(super) fn start(self, until: Instant, answers: &Rc<RefCell<Answers>>) -> Vec<JoinHandle<()>> {
        let crowd = Rc::new(self);
        (0..crowd.behaviour.clients())
            .map(|number| {
                let (crowd, answers) = (Rc::clone(&crowd), Rc::clone(answers));
                spawn_local(async move {
                    // Spread over half of a second.
                    sleep(Duration::from_millis(number as u64 % 500)).await;
                    match crowd.behaviour {
                        Behaviour::Slow { .. } => crowd.slow(number, until).await,
                        _ => crowd.fast(number, until, &answers).await,
                    }
                })
            })
            .collect()
    }

    async fn fast(&self, number: usize, until: Instant, answers: &RefCell<Answers>) {
        let mut random = StdRng::seed_from_u64(number as u64);
        let has_bad_keys = matches!(self.behaviour, Behaviour::BadKeys { .. });
        let costly = Bytes::from(costly::namespaces());
        let mut client = Client::new(self.address, source(if has_bad_keys { 0 } else { number }));
        while Instant::now() < until {
            let unknown = ApiKey::from_random(random.random::<[u8; RANDOM_BYTES]>());
            let request = match self.behaviour {
                Behaviour::BadKeys { .. } => render_request(unknown.expose(), 0, 0),
                Behaviour::Costly { caller, .. } => {
                    let key = match caller {
                        Caller::WithoutKey => "",
                        Caller::UnknownKey => unknown.expose(),
                        Caller::WithoutQuota => &self.key,
                    };
                    Request::post(RENDER, key, costly.clone())
                }
                _ => render_request(&self.key, 0, 0),
            };
            let answer = client.send(&request).await;
            if answer.is_err() {
                sleep(RECONNECT_INTERVAL).await;
            }
            answers.borrow_mut().add(answer.map(|it| it.status), until);
        }
    }

    async fn slow(&self, number: usize, until: Instant) {
        let Behaviour::Slow { uploads, heads, .. } = self.behaviour else { return };
        let head = |length| Request::post(RENDER, &self.key, "").head(self.address, length);
        let first = if number < uploads {
            head(LARGE_BODY_BYTES) + &" ".repeat(FIRST_BYTES)
        } else if number < uploads + heads {
            "POST /v1/render HTTP/1.1\r\nhost: a\r\nx-slow: ".to_owned()
        } else {
            head(SMALL_BODY_BYTES)
        };
        while Instant::now() < until {
            if let Ok(stream) = connect(self.address, source(number)).await {
                let _ = send_slowly(stream, first.as_bytes()).await;
            }
            sleep(SLOW_RECONNECT_INTERVAL.min(until.saturating_duration_since(Instant::now()))).await;
        }
    }
}

/// The address of a client, which is not that of the good one.
fn source(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(number % ADDRESSES).unwrap_or_default())
}

/// Sends a byte at each interval, until the server has closed the connection.
async fn send_slowly(mut stream: TcpStream, first: &[u8]) -> Result<()> {
    stream.write_all(first).await?;
    let mut buffer = [0; 1024];
    loop {
        match timeout(BYTE_INTERVAL, stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return Ok(()),
            // The answer; the client continues as if it had not seen it.
            Ok(Ok(_)) => {}
            Err(_) => stream.write_all(b"x").await?,
        }
    }
}
