//! A limit of what runs at once, in which flows, such as accounts, take turns.
//!
//! Invariant: there are never more permits than the limit, and one that is dropped, or that its waiter does not take, goes to the
//! next waiter.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

use crate::fair_queue::{FairQueue, Ticket};

/// A limit of what runs at once; clones share it.
#[derive(Debug, Clone)]
pub struct FairLimit<K: PartialEq + Clone>(Arc<Mutex<Permits<K>>>);

#[derive(Debug)]
struct Permits<K: PartialEq + Clone> {
    free: usize,
    queue: FairQueue<K, oneshot::Sender<Permit<K>>>,
}

impl<K: PartialEq + Clone> FairLimit<K> {
    /// A limit for which at most `max_queued` wait.
    #[must_use]
    pub fn new(limit: usize, max_queued: usize) -> Self {
        Self(Arc::new(Mutex::new(Permits { free: limit, queue: FairQueue::new(max_queued) })))
    }

    /// Waits for a turn of a flow; `None` if it does not come in time, or if the queue has no space for it.
    pub async fn acquire(&self, flow: &K, wait: Duration) -> Option<Permit<K>> {
        let (sender, receiver) = oneshot::channel();
        let ticket = {
            let mut permits = self.0.lock();
            if permits.free > 0 {
                permits.free -= 1;
                return Some(Permit(Arc::clone(&self.0)));
            }
            permits.queue.join(flow, sender).ok()?.0
        };
        let _position = Position { permits: &self.0, ticket };
        // The sender is dropped if another flow takes the space in the queue.
        timeout(wait, receiver).await.ok()?.ok()
    }
}

/// An entry of the queue, which leaves it when this is dropped.
struct Position<'a, K: PartialEq + Clone> {
    permits: &'a Mutex<Permits<K>>,
    ticket: Ticket,
}

impl<K: PartialEq + Clone> Drop for Position<'_, K> {
    fn drop(&mut self) {
        self.permits.lock().queue.remove(self.ticket);
    }
}

/// One of a limit, until it is dropped.
#[derive(Debug)]
pub struct Permit<K: PartialEq + Clone>(Arc<Mutex<Permits<K>>>);

impl<K: PartialEq + Clone> Drop for Permit<K> {
    fn drop(&mut self) {
        let next = {
            let mut permits = self.0.lock();
            let Some((_, next)) = permits.queue.pop(|_, _| true) else {
                permits.free += 1;
                return;
            };
            next
        };
        // If the waiter has gone, the permit is dropped here, and the next one gets it.
        let _ = next.send(Self(Arc::clone(&self.0)));
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};
    use tokio::time::Instant;

    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    fn state(limit: &FairLimit<u32>) -> (usize, usize) {
        let permits = limit.0.lock();
        (permits.queue.len(), permits.free)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_requests_does_not_delay_another_one() {
        let limit = FairLimit::new(1, 99);
        let first = limit.acquire(&1, WAIT).await;
        let order = Mutex::new(Vec::new());
        let request = async |client| {
            let _permit = limit.acquire(&client, WAIT).await.unwrap();
            order.lock().push(client);
        };
        let requests = join_all([1, 1, 1, 1, 1, 1, 2].map(request));
        let mut requests = std::pin::pin!(requests);
        assert!((&mut requests).now_or_never().is_none());
        drop(first);
        requests.await;
        assert_eq!(*order.lock(), [1, 2, 1, 1, 1, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_time_and_only_if_the_queue_has_space() {
        let limit = FairLimit::new(0, 2);
        let began = Instant::now();
        let requests = join_all([&1, &1].map(|client| limit.acquire(client, WAIT)));
        let mut requests = std::pin::pin!(requests);
        assert!((&mut requests).now_or_never().is_none());
        assert!(limit.acquire(&1, WAIT).await.is_none());
        assert_eq!((began.elapsed(), state(&limit)), (Duration::ZERO, (2, 0)));
        assert!(requests.await.iter().all(Option::is_none));
        assert_eq!((began.elapsed(), state(&limit)), (WAIT, (0, 0)));
    }

    #[tokio::test]
    async fn a_permit_of_a_request_that_was_cancelled_is_passed_on() {
        let limit = FairLimit::new(1, 9);
        let first = limit.acquire(&1, WAIT).await;
        let mut second = Box::pin(limit.acquire(&1, WAIT));
        let mut third = Box::pin(limit.acquire(&2, WAIT));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        // The second gets the permit and does not take it.
        drop(first);
        drop(second);
        drop(third.await);
        assert_eq!(state(&limit), (0, 1));
    }
}
