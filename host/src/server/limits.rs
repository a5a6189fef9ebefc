//! Limits of connections, uploads and requests, in all and for each address, and all time limits of the server.
//!
//! Invariant: what is waited for is refused after [`WAIT_TIMEOUT`].

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use platen_program::FairLimit;
use tokio::{sync::Notify, time::timeout};

use super::{request_head::ClientAddress, server_error::ServerError};
use crate::db::FlowId;

/// The time for what a request waits for; most clients give up or retry soon after it. Every client has as much for a body or a
/// response, however slow it is: the largest files take less with 50 Mbit/s.
pub(super) const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for a head, and for the pause before it. Reverse proxies keep connections for 60 s.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// The largest body at 280 kB/s; nearly all are far smaller. Also for the rest of a body after the response.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_mins(2);
/// The time in which the client takes a part of a response.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Once the server drains: for a request to be read whose bytes the kernel has, and then for the rest of a head that has
/// begun.
pub(super) const DRAIN_READ_TIMEOUT: Duration = Duration::from_secs(1);
/// What instances have to do after the last response is usually one statement.
pub(super) const INSTANCE_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the database and the farm may take to respond to a check, and how long its result is used for further ones.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// A limit in all and for each address. All permits together do not exceed the limit, and those of one address do not exceed
/// its own.
pub(super) struct AddressLimit {
    max: usize,
    max_per_address: usize,
    taken: Mutex<Taken>,
    released: Notify,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_address: HashMap<ClientAddress, usize>,
}

impl AddressLimit {
    /// Addresses are not limited without `max_per_address`.
    pub(super) fn new(max: usize, max_per_address: Option<usize>) -> Arc<Self> {
        let max_per_address = max_per_address.unwrap_or(max);
        Arc::new(Self { max, max_per_address, taken: Mutex::default(), released: Notify::new() })
    }

    /// One of the limit, if there is one left.
    pub(super) fn try_acquire(self: &Arc<Self>, address: ClientAddress) -> Option<AddressPermit> {
        let mut taken = self.taken.lock();
        let own = taken.by_address.get(&address).copied().unwrap_or(0);
        if taken.all >= self.max || own >= self.max_per_address {
            return None;
        }
        taken.all += 1;
        taken.by_address.insert(address, own + 1);
        Some(AddressPermit { limit: Arc::clone(self), address })
    }

    /// One of the limit, for which this waits.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        address: ClientAddress,
    ) -> Result<AddressPermit, ServerError> {
        let waiting = async {
            loop {
                let mut released = std::pin::pin!(self.released.notified());
                released.as_mut().enable();
                if let Some(permit) = self.try_acquire(address) {
                    return permit;
                }
                released.await;
            }
        };
        timeout(WAIT_TIMEOUT, waiting).await.map_err(|_| ServerError::TooManyRequests)
    }
}

/// One connection or upload of a limit, until this is dropped.
pub(super) struct AddressPermit {
    limit: Arc<AddressLimit>,
    address: ClientAddress,
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut taken = self.limit.taken.lock();
        taken.all -= 1;
        if let Some(own) = taken.by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                taken.by_address.remove(&self.address);
            }
        }
        drop(taken);
        self.limit.released.notify_waiters();
    }
}

/// The right of a request to be handled by a component, or of a password to be hashed.
pub(super) type Permit = platen_program::Permit<FlowId>;

/// Limits the requests that components handle at once. Flows are served in turn; a request is refused at once when the queue
/// is full.
#[derive(Clone)]
pub(super) struct ConcurrencyLimit(FairLimit<FlowId>);

impl ConcurrencyLimit {
    pub(super) fn new(free: usize, max_queued: usize) -> Self {
        Self(FairLimit::new(free, free, max_queued))
    }

    /// Waits for the turn of a request of a flow.
    pub(super) async fn acquire(&self, flow: FlowId) -> Result<Permit, ServerError> {
        self.0.acquire(&flow, WAIT_TIMEOUT).await.ok_or(ServerError::TooManyRequests)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures::FutureExt as _;

    use super::*;

    fn address(last: u8) -> ClientAddress {
        IpAddr::from([127, 0, 0, last]).into()
    }

    #[test]
    fn all_addresses_and_each_one_are_limited() {
        let limit = AddressLimit::new(3, Some(2));
        let permits = [1, 1, 1, 2, 2].map(|last| limit.try_acquire(address(last)));
        assert_eq!(permits.each_ref().map(Option::is_some), [true, true, false, true, false]);
        drop(permits);
        let taken = limit.taken.lock();
        assert_eq!((taken.all, taken.by_address.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_waited_for() {
        let limit = AddressLimit::new(9, Some(1));
        let first = limit.acquire(address(1)).await.unwrap();
        let _other = limit.acquire(address(2)).now_or_never().unwrap().unwrap();
        assert!(limit.acquire(address(1)).await.is_err());
        let mut second = Box::pin(limit.acquire(address(1)));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        second.await.unwrap();
    }
}
