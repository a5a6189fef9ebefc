//! A limit of what runs at once, in which flows, such as accounts, take turns.
//!
//! Invariant: there are never more permits than the limit, no flow has more than its own limit, and one that is dropped, or that
//! its waiter does not take, goes to the next waiter that may have it.

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
    max_of_flow: usize,
    /// The flow of each permit.
    held: Vec<K>,
    queue: FairQueue<K, oneshot::Sender<Permit<K>>>,
}

impl<K: PartialEq + Clone> Permits<K> {
    fn take(&mut self, flow: &K) {
        self.free -= 1;
        self.held.push(flow.clone());
    }
}

/// Whether a flow may have one more of these permits.
fn is_below<K: PartialEq>(max_of_flow: usize, held: &[K], flow: &K) -> bool {
    held.iter().filter(|held| *held == flow).count() < max_of_flow
}

impl<K: PartialEq + Clone> FairLimit<K> {
    /// A limit for which at most `max_queued` wait, and of which a flow has at most `max_of_flow`.
    #[must_use]
    pub fn new(limit: usize, max_of_flow: usize, max_queued: usize) -> Self {
        let queue = FairQueue::new(max_queued);
        Self(Arc::new(Mutex::new(Permits { free: limit, max_of_flow, held: Vec::new(), queue })))
    }

    /// Waits for a turn of a flow; `None` if it does not come in time, or if the queue has no space for it.
    pub async fn acquire(&self, flow: &K, wait: Duration) -> Option<Permit<K>> {
        let (sender, receiver) = oneshot::channel();
        let ticket = {
            let mut permits = self.0.lock();
            if permits.free > 0 && is_below(permits.max_of_flow, &permits.held, flow) {
                permits.take(flow);
                return Some(Permit { permits: Arc::clone(&self.0), flow: flow.clone() });
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
pub struct Permit<K: PartialEq + Clone> {
    permits: Arc<Mutex<Permits<K>>>,
    flow: K,
}

impl<K: PartialEq + Clone> Drop for Permit<K> {
    fn drop(&mut self) {
        let (flow, next) = {
            let mut permits = self.permits.lock();
            let Permits { free, max_of_flow, held, queue } = &mut *permits;
            *free += 1;
            if let Some(index) = held.iter().position(|held| *held == self.flow) {
                held.swap_remove(index);
            }
            let Some((flow, next)) = queue.pop(|flow, _| is_below(*max_of_flow, held, flow)) else { return };
            permits.take(&flow);
            (flow, next)
        };
        // If the waiter has gone, the permit is dropped here, and the next one gets it.
        let _ = next.send(Self { permits: Arc::clone(&self.permits), flow });
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
        let limit = FairLimit::new(1, 1, 99);
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
        let limit = FairLimit::new(0, 1, 2);
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
        let limit = FairLimit::new(1, 1, 9);
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

    #[tokio::test]
    async fn a_flow_leaves_what_is_above_its_own_limit() {
        let limit = FairLimit::new(2, 1, 9);
        let first = limit.acquire(&1, WAIT).await;
        let mut second = Box::pin(limit.acquire(&1, WAIT));
        assert!((&mut second).now_or_never().is_none());
        // Another flow does not wait, and its end starts nothing of the first one.
        let other = limit.acquire(&2, WAIT).now_or_never().unwrap();
        let mut third = Box::pin(limit.acquire(&1, WAIT));
        assert!((&mut third).now_or_never().is_none());
        drop(other);
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let second = (&mut second).now_or_never().unwrap();
        assert!(second.is_some() && (&mut third).now_or_never().is_none());
        drop(second);
        drop(third.await);
        assert_eq!(state(&limit), (0, 2));
    }
}
