//! The bodies that arrive in several parts, and which of them is given up when they hold too much together.
//!
//! Invariant: only a slow one is given up, and only for another request that needs what it holds.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use platen_farm::RepeatedWarning;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{client_address::ClientAddress, connections::Full, server_error::ServerError};
use crate::db::Flow;

/// A body is not given up before.
const MIN_TIME: Duration = Duration::from_millis(500);
/// A body is slow if it has arrived at a lower average rate.
const SLOW_BYTES_PER_SECOND: u64 = 64 * 1024;
/// How long a request waits for what others hold.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The waits between two looks double up to the maximum. A body that is given up returns what it holds when its task
/// runs.
const MIN_INTERVAL: Duration = Duration::from_millis(5);
const MAX_INTERVAL: Duration = Duration::from_millis(80);

/// What a body can hold of the budgets of all bodies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held {
    FirstBytes,
    FurtherBytes,
    Instance,
}

#[derive(Default)]
pub(super) struct PartialBodies {
    open: Mutex<HashMap<u64, Arc<Body>>>,
    next_id: AtomicU64,
    given_up: RepeatedWarning,
}

/// Who shares a budget with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Address(ClientAddress),
    /// Of a valid key.
    Credentials(Flow),
}

struct Body {
    address: ClientAddress,
    /// Once a component has accepted them.
    credentials: OnceLock<Flow>,
    began: Instant,
    /// By [`Held`].
    held: [AtomicU64; 3],
    given_up: CancellationToken,
}

impl Body {
    fn is_of(&self, owner: Owner) -> bool {
        match owner {
            Owner::Address(address) => self.address == address,
            Owner::Credentials(flow) => self.credentials.get() == Some(&flow),
        }
    }

    fn held(&self, what: Held) -> u64 {
        self.held[what as usize].load(Ordering::Relaxed)
    }

    /// In bytes per second.
    fn rate(&self) -> u64 {
        let bytes = self.held(Held::FirstBytes) + self.held(Held::FurtherBytes);
        bytes.saturating_mul(1_000)
            / u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

impl PartialBodies {
    pub(super) fn begin(self: &Arc<Self>, address: ClientAddress) -> PartialBody {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = Arc::new(Body {
            address,
            credentials: OnceLock::new(),
            began: Instant::now(),
            held: Default::default(),
            given_up: CancellationToken::new(),
        });
        self.open.lock().insert(id, Arc::clone(&body));
        PartialBody { all: Arc::clone(self), id, body }
    }

    /// Calls `take` until it succeeds, for up to [`MAX_WAIT`]. Meanwhile slow bodies are given up that hold what it
    /// takes.
    pub(super) async fn take(
        &self,
        what: Held,
        owner: Owner,
        mut take: impl FnMut() -> Result<(), Full>,
    ) -> Result<(), ServerError> {
        let (until, mut interval) = (Instant::now() + MAX_WAIT, MIN_INTERVAL);
        while let Err(full) = take() {
            if Instant::now() + interval > until {
                return Err(ServerError::TooManyRequests);
            }
            self.give_up(what, (full == Full::Share).then_some(owner));
            sleep(interval).await;
            interval = (interval * 2).min(MAX_INTERVAL);
        }
        Ok(())
    }

    /// Gives up the slow body that holds most, of all or of one owner.
    fn give_up(&self, what: Held, only: Option<Owner>) {
        let mut open = self.open.lock();
        let slow = open.iter().filter(|(_, body)| {
            only.is_none_or(|only| body.is_of(only))
                && body.held(what) > 0
                && body.began.elapsed() >= MIN_TIME
                && body.rate() < SLOW_BYTES_PER_SECOND
        });
        let chosen = slow.max_by_key(|(_, body)| (body.held(what), Reverse(body.rate()))).map(|(id, _)| *id);
        let Some(body) = chosen.and_then(|id| open.remove(&id)) else { return };
        body.given_up.cancel();
        drop(open);
        if let Some(count) = self.given_up.record() {
            tracing::warn!(count, ?what, "giving up slow bodies: others need what they hold");
        }
    }
}

/// A body of which parts are still to arrive, until this is dropped.
pub(super) struct PartialBody {
    all: Arc<PartialBodies>,
    id: u64,
    body: Arc<Body>,
}

impl PartialBody {
    pub(super) fn hold(&self, what: Held, amount: u64) {
        self.body.held[what as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// The component waits for this body, and has accepted the credentials of its request.
    pub(super) fn hold_instance(&self, credentials: Flow) {
        let _ = self.body.credentials.set(credentials);
        self.hold(Held::Instance, 1);
    }

    /// Completes when the body is given up.
    pub(super) async fn given_up(&self) {
        self.body.given_up.cancelled().await;
    }
}

impl Drop for PartialBody {
    fn drop(&mut self) {
        self.all.open.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn address(last: u8) -> ClientAddress {
        IpAddr::from([127, 0, 0, last]).into()
    }

    fn begin(all: &Arc<PartialBodies>, last: u8, bytes: u64) -> PartialBody {
        let body = all.begin(address(last));
        body.hold(Held::FurtherBytes, bytes);
        body
    }

    /// Which of the bodies are given up for a request of this owner.
    async fn given_up(
        all: &PartialBodies,
        what: Held,
        full: Full,
        owner: Owner,
        bodies: &[PartialBody],
    ) -> Vec<bool> {
        let mut looks = 0;
        let taken = all.take(what, owner, || {
            looks += 1;
            if looks == 1 { Err(full) } else { Ok(()) }
        });
        taken.await.unwrap();
        bodies.iter().map(|body| body.body.given_up.is_cancelled()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_slow_body_that_holds_most_is_given_up() {
        let all = Arc::default();
        let bodies = [begin(&all, 1, 10), begin(&all, 2, 30), begin(&all, 2, 20), begin(&all, 3, 10 << 20)];
        let for_address = async |full, last| {
            given_up(&all, Held::FurtherBytes, full, Owner::Address(address(last)), &bodies).await
        };
        let none = [false; 4];
        assert_eq!(for_address(Full::Total, 9).await, none, "too early");
        sleep(MIN_TIME).await;
        assert_eq!(for_address(Full::Share, 3).await, none, "it is fast");
        assert_eq!(for_address(Full::Share, 1).await, [true, false, false, false]);
        assert_eq!(for_address(Full::Total, 9).await, [true, true, false, false]);
        drop(bodies);
        assert!(all.open.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_of_those_that_hold_the_same_is_given_up() {
        let all = Arc::default();
        let bodies = [begin(&all, 1, 20), begin(&all, 1, 10), begin(&all, 2, 5), begin(&all, 1, 1)];
        for (body, credentials) in bodies.iter().zip([1_u8, 1, 2]) {
            body.hold_instance(Flow::of(credentials));
        }
        sleep(MIN_TIME).await;
        let for_credentials = async |full, credentials: u8| {
            given_up(&all, Held::Instance, full, Owner::Credentials(Flow::of(credentials)), &bodies).await
        };
        assert_eq!(for_credentials(Full::Share, 1).await, [false, true, false, false]);
        assert_eq!(for_credentials(Full::Total, 9).await, [false, true, true, false]);
        bodies[1].given_up().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_time() {
        let all = PartialBodies::default();
        let began = Instant::now();
        let taken = all.take(Held::Instance, Owner::Address(address(1)), || Err(Full::Total)).await;
        assert_eq!(taken, Err(ServerError::TooManyRequests));
        assert!(began.elapsed() <= MAX_WAIT && began.elapsed() > MAX_WAIT / 2);
    }
}
