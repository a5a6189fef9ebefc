//! The open connections: their limits, what each is doing, and which one is closed to make space.
//!
//! Invariant: at most `max` connections are open, and `max_per_address` from one address. A connection whose request
//! is being answered is never closed to make space, nor one on which a request has arrived that has not been read.

mod eviction;

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Context,
    time::Duration,
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::eviction::Need;
use super::{client_address::ClientAddress, client_socket::UnreadBytes};
use crate::metrics::Metrics;

/// For what requests open besides their connections, when no file descriptor is left.
const MAX_RESERVED_FILES: usize = 16;
/// How long fewer connections are allowed then.
const LOWERED_TIME: Duration = Duration::from_mins(1);

/// One of this many is closed at a time, because all of them are looked at for that.
const CONNECTIONS_PER_BATCH: usize = 64;
/// Connections on which a request has arrived that are passed over for those to close.
const MAX_PASSED_OVER: usize = 8;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Has not had a request yet.
    New,
    /// Waits for a further request, receives its head, or is being closed.
    Idle,
    ReceivingBody,
    Responding,
    /// Closed to make space.
    Evicted,
}

/// An open connection.
pub(super) struct Connection {
    id: u64,
    address: ClientAddress,
    activity: Mutex<(Activity, Instant)>,
    unread: OnceLock<UnreadBytes>,
    /// It has had a request with a valid key.
    has_valid_key: AtomicBool,
    /// From the head of a request to the end of its response.
    has_request: AtomicBool,
    responded: AtomicWaker,
    evicted: CancellationToken,
    drain: Arc<Drain>,
}

impl Connection {
    pub(super) fn address(&self) -> ClientAddress {
        self.address
    }

    /// Called once.
    pub(super) fn set_unread(&self, unread: UnreadBytes) {
        let _ = self.unread.set(unread);
    }

    /// Begins an activity. A connection that is being closed stays so: the error is that.
    pub(super) fn begin(&self, activity: Activity) -> Result<(), Evicted> {
        let mut current = self.activity.lock();
        if current.0 == Activity::Evicted {
            return Err(Evicted);
        }
        *current = (activity, Instant::now());
        Ok(())
    }

    pub(super) fn set_has_valid_key(&self) {
        self.has_valid_key.store(true, Ordering::Relaxed);
    }

    pub(super) fn set_has_request(&self, has_request: bool) {
        self.has_request.store(has_request, Ordering::Release);
        if !has_request {
            self.responded.wake();
        }
    }

    /// Wakes this task when the connection has no request any more.
    pub(super) fn wake_when_responded(&self, context: &Context<'_>) {
        self.responded.register(context.waker());
    }

    pub(super) fn has_request(&self) -> bool {
        self.has_request.load(Ordering::Acquire)
    }

    /// Completes when the connection is closed to make space.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// When the server began to drain.
    pub(super) fn draining_since(&self) -> Option<Instant> {
        self.drain.since.get().copied()
    }

    /// Completes when the server drains.
    pub(super) async fn draining(&self) {
        self.drain.token.cancelled().await;
    }

    /// Closes the connection, whatever it is doing.
    pub(super) fn evict(&self) {
        self.activity.lock().0 = Activity::Evicted;
        self.evicted.cancel();
    }
}

/// The connection is being closed to make space for another one.
#[derive(Debug)]
pub(super) struct Evicted;

#[derive(Default)]
struct Drain {
    since: OnceLock<Instant>,
    token: CancellationToken,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// That of all clients.
    Total,
    /// That of the client's own share.
    Share,
}

/// All open connections.
pub(super) struct Connections {
    max: usize,
    /// `None`: addresses are not limited.
    max_per_address: Option<usize>,
    open: Mutex<Open>,
    next_id: AtomicU64,
    drain: Arc<Drain>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Open {
    max: usize,
    /// When `max` was lowered.
    lowered: Option<Instant>,
    count: usize,
    by_address: HashMap<ClientAddress, HashMap<u64, Arc<Connection>>>,
}

impl Connections {
    pub(super) fn new(max: usize, max_per_address: Option<usize>, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_per_address,
            open: Mutex::new(Open { max, ..Open::default() }),
            next_id: AtomicU64::default(),
            drain: Arc::default(),
            metrics,
        })
    }

    /// Opens a connection; another one is closed if there are too many. The error is that all of those have requests.
    pub(super) fn open(self: &Arc<Self>, address: ClientAddress) -> Result<OpenConnection, Full> {
        let mut open = self.open.lock();
        if open.lowered.is_some_and(|lowered| lowered.elapsed() > LOWERED_TIME) {
            (open.max, open.lowered) = (self.max, None);
        }
        let own = open.by_address.get(&address).map_or(0, HashMap::len);
        if self.max_per_address.is_some_and(|max| own >= max) && !self.evict(&mut open, Some(address)) {
            return Err(Full::Share);
        }
        if open.count >= open.max && !self.evict(&mut open, None) {
            return Err(Full::Total);
        }
        let connection = Arc::new(Connection {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            address,
            activity: Mutex::new((Activity::New, Instant::now())),
            unread: OnceLock::new(),
            has_valid_key: AtomicBool::new(false),
            has_request: AtomicBool::new(false),
            responded: AtomicWaker::new(),
            evicted: CancellationToken::new(),
            drain: Arc::clone(&self.drain),
        });
        open.by_address.entry(address).or_default().insert(connection.id, Arc::clone(&connection));
        open.count += 1;
        self.metrics.connections.inc();
        Ok(OpenConnection { connections: Arc::clone(self), connection })
    }

    /// Allows fewer connections than are open for a while, so that other parts of the process get file descriptors: a
    /// request needs one more for its job.
    /// Returns how many are allowed.
    pub(super) fn lower_max(&self) -> usize {
        let mut open = self.open.lock();
        let reserved = MAX_RESERVED_FILES.min(open.count / 2);
        open.max = open.max.min(open.count - reserved).max(1);
        open.lowered = Some(Instant::now());
        while open.count > open.max && self.evict(&mut open, None) {}
        open.max
    }

    /// Ends keep-alive: idle connections close, the others after their response.
    pub(super) fn drain(&self) {
        let _ = self.drain.since.set(Instant::now());
        self.drain.token.cancel();
    }

    /// Closes every connection, whatever it is doing.
    pub(super) fn abort(&self) -> usize {
        let open = self.open.lock();
        open.by_address.values().flat_map(HashMap::values).for_each(|connection| connection.evict());
        open.count
    }

    /// Closes connections of which others need the space: first the one that has been idle longest of the address with
    /// the most connections. If none is idle, one whose body arrives slowly.
    fn evict(&self, open: &mut Open, only: Option<ClientAddress>) -> bool {
        let max = if only.is_some() { self.max_per_address.unwrap_or(self.max) } else { self.max };
        let batch = (max / CONNECTIONS_PER_BATCH).max(1);
        let mut evicted = 0;
        for (order, connection) in open.most_dispensable(batch + MAX_PASSED_OVER, only) {
            if evicted == batch || (evicted > 0 && order.need >= Need::BetweenRequests) {
                break;
            }
            if order.need != Need::Body && connection.unread.get().is_some_and(UnreadBytes::exist) {
                continue;
            }
            connection.evict();
            self.metrics.connections_evicted.inc();
            open.remove(&connection);
            evicted += 1;
        }
        evicted > 0
    }
}

impl Open {
    /// Removes a connection that has not been removed yet.
    fn remove(&mut self, connection: &Connection) {
        let Some(own) = self.by_address.get_mut(&connection.address) else { return };
        if own.remove(&connection.id).is_some() {
            self.count -= 1;
            if own.is_empty() {
                self.by_address.remove(&connection.address);
            }
        }
    }
}

/// A connection that counts as open until this is dropped.
pub(super) struct OpenConnection {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl OpenConnection {
    pub(super) fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.connection)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.lock().remove(&self.connection);
        self.connections.metrics.connections.dec();
    }
}

#[cfg(test)]
mod tests;
