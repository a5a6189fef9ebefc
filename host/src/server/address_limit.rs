//! A limit in all and for each address.
//!
//! Invariant: the shares of all addresses together do not exceed the limit, and no share exceeds that of one address.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

use super::{client_address::ClientAddress, server_error::ServerError};

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
    /// Without `max_per_address`, addresses are not limited.
    pub(super) fn new(max: usize, max_per_address: Option<usize>) -> Arc<Self> {
        let max_per_address = max_per_address.unwrap_or(max);
        Arc::new(Self { max, max_per_address, taken: Mutex::default(), released: Notify::new() })
    }

    /// A share of the limit, which is empty at first.
    pub(super) fn share(self: &Arc<Self>, address: ClientAddress) -> Share {
        Share { limit: Arc::clone(self), address, amount: 0 }
    }

    /// A share of one, for which this waits.
    pub(super) async fn one(
        self: &Arc<Self>,
        address: ClientAddress,
        max_wait: Duration,
    ) -> Result<Share, ServerError> {
        let mut share = self.share(address);
        let growing = async {
            loop {
                let mut released = std::pin::pin!(self.released.notified());
                released.as_mut().enable();
                if share.grow(1).is_ok() {
                    return;
                }
                released.await;
            }
        };
        timeout(max_wait, growing).await.map_err(|_| ServerError::TooManyRequests)?;
        Ok(share)
    }
}

/// What one connection or request has of a limit, until this is dropped.
pub(super) struct Share {
    limit: Arc<AddressLimit>,
    address: ClientAddress,
    amount: usize,
}

impl Share {
    pub(super) fn grow(&mut self, amount: usize) -> Result<(), ServerError> {
        let mut taken = self.limit.taken.lock();
        let own = taken.by_address.get(&self.address).copied().unwrap_or(0);
        if taken.all + amount > self.limit.max || own + amount > self.limit.max_per_address {
            return Err(ServerError::TooManyRequests);
        }
        taken.all += amount;
        taken.by_address.insert(self.address, own + amount);
        self.amount += amount;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut taken = self.limit.taken.lock();
        taken.all -= self.amount;
        if let Some(own) = taken.by_address.get_mut(&self.address) {
            *own -= self.amount;
            if *own == 0 {
                taken.by_address.remove(&self.address);
            }
        }
        drop(taken);
        self.limit.released.notify_waiters();
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
        let limit = AddressLimit::new(10, Some(6));
        let mut shares = [1, 1, 2].map(|last| limit.share(address(last)));
        shares[0].grow(4).unwrap();
        shares[1].grow(2).unwrap();
        assert!(shares[1].grow(1).is_err(), "the share of the address");
        shares[2].grow(4).unwrap();
        assert!(shares[2].grow(1).is_err(), "the limit of all");
        drop(shares);
        let taken = limit.taken.lock();
        assert_eq!((taken.all, taken.by_address.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_waited_for() {
        let limit = AddressLimit::new(9, Some(1));
        let wait = Duration::from_secs(10);
        let first = limit.one(address(1), wait).await.unwrap();
        let _other = limit.one(address(2), wait).now_or_never().unwrap().unwrap();
        assert!(limit.one(address(1), wait).await.is_err());
        let mut second = Box::pin(limit.one(address(1), wait));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        second.await.unwrap();
    }
}
