//! Limits concurrent requests and the bytes of their large bodies.
//!
//! Invariant: a request takes a place when its body has arrived, or for a large body, while its component does not wait
//! for it. Flows are served in turn. A request is refused after [`QUEUE_TIMEOUT`], or at once when the queue is full.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use platen_farm::{FairQueue, Ticket};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::server_error::ServerError;
use crate::db::Flow;

/// Nearly all requests wait for the farm, with some kilobytes of memory each.
const MAX_CONCURRENT: usize = 512;
const MAX_QUEUED: usize = 1024;
/// Most clients give up or retry soon after this.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for all large bodies in components. A component holds a body about four times, so this is a gigabyte at
/// most.
const MAX_LARGE_BODY_BYTES: u64 = 256 * MIB;
const MIB: u64 = 1024 * 1024;

pub(super) struct ConcurrencyLimit {
    places: Arc<Mutex<Places>>,
    /// One permit per mebibyte.
    large_bodies: Arc<Semaphore>,
}

struct Places {
    free: usize,
    queue: FairQueue<Flow, oneshot::Sender<Place>>,
}

/// The permits of one request, which are returned when this is dropped.
/// A request that is not limited has none.
#[derive(Debug, Default)]
pub(super) struct Permits {
    _place: Option<Place>,
    _large_body: Option<OwnedSemaphorePermit>,
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self::new(MAX_CONCURRENT, MAX_QUEUED)
    }
}

impl ConcurrencyLimit {
    fn new(max_concurrent: usize, max_queued: usize) -> Self {
        Self {
            places: Arc::new(Mutex::new(Places { free: max_concurrent, queue: FairQueue::new(max_queued) })),
            large_bodies: Arc::new(Semaphore::new(mebibytes(MAX_LARGE_BODY_BYTES) as usize)),
        }
    }

    /// Waits for the permits of a request of a flow; `large_body_bytes` is 0 for one with
    /// a small body.
    pub(super) async fn acquire(&self, flow: Flow, large_body_bytes: u64) -> Result<Permits, ServerError> {
        let acquire = async {
            let large_body = match large_body_bytes {
                0 => None,
                bytes => {
                    Some(Arc::clone(&self.large_bodies).acquire_many_owned(mebibytes(bytes)).await.ok()?)
                }
            };
            Some(Permits { _place: Some(self.place(flow).await?), _large_body: large_body })
        };
        timeout(QUEUE_TIMEOUT, acquire).await.ok().flatten().ok_or(ServerError::TooManyRequests)
    }

    /// `None` if the queue has no space, or another flow has taken it.
    async fn place(&self, flow: Flow) -> Option<Place> {
        let waiting = {
            let mut places = self.places.lock();
            if places.free > 0 {
                places.free -= 1;
                return Some(Place(Some(Arc::clone(&self.places))));
            }
            let (sender, receiver) = oneshot::channel();
            let (ticket, _) = places.queue.join(&flow, sender).ok()?;
            Queued { places: &self.places, ticket, receiver: Some(receiver) }
        };
        waiting.place().await
    }
}

/// A request in the queue, which leaves it when this is dropped.
struct Queued<'a> {
    places: &'a Mutex<Places>,
    ticket: Ticket,
    receiver: Option<oneshot::Receiver<Place>>,
}

impl Queued<'_> {
    async fn place(mut self) -> Option<Place> {
        self.receiver.as_mut()?.await.ok()
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        // A place that was not received is passed on here.
        drop(self.receiver.take());
        self.places.lock().queue.remove(self.ticket);
    }
}

/// The right to be dispatched to a component.
#[derive(Debug)]
struct Place(Option<Arc<Mutex<Places>>>);

impl Drop for Place {
    fn drop(&mut self) {
        let Some(places) = self.0.take() else { return };
        loop {
            let mut locked = places.lock();
            let Some((_, sender)) = locked.queue.pop(|_| true) else {
                locked.free += 1;
                return;
            };
            drop(locked);
            match sender.send(Self(Some(Arc::clone(&places)))) {
                Ok(()) => return,
                // The request was cancelled; the next one gets the place.
                Err(mut place) => drop(place.0.take()),
            }
        }
    }
}

impl std::fmt::Debug for Places {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Places").field("free", &self.free).finish_non_exhaustive()
    }
}

fn mebibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.min(MAX_LARGE_BODY_BYTES).div_ceil(MIB)).expect("at most 256 mebibytes")
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};
    use tokio::time::Instant;

    use super::*;

    fn queued(limit: &ConcurrencyLimit) -> usize {
        limit.places.lock().queue.len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_over_the_limit_waits_and_is_then_refused() {
        let limit = ConcurrencyLimit::new(1, 9);
        let first = limit.acquire(Flow::of(1), 0).await.unwrap();
        assert_eq!(limit.acquire(Flow::of(1), 0).await.map(drop), Err(ServerError::TooManyRequests));
        drop(first);
        limit.acquire(Flow::of(1), 0).await.map(drop).unwrap();
        assert_eq!((queued(&limit), limit.places.lock().free), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_share_a_limit_of_bytes() {
        let limit = ConcurrencyLimit::new(100, 9);
        let mut permits = Vec::new();
        for _ in 0..8 {
            permits.push(limit.acquire(Flow::of(1), 32 * MIB).await.unwrap());
        }
        assert_eq!(limit.acquire(Flow::of(1), 2 * MIB).await.map(drop), Err(ServerError::TooManyRequests));
        limit.acquire(Flow::of(1), 0).await.map(drop).unwrap();
        permits.pop();
        limit.acquire(Flow::of(1), 2 * MIB).await.map(drop).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_requests_does_not_delay_another_one() {
        let limit = ConcurrencyLimit::new(1, 99);
        let first = limit.acquire(Flow::of(1), 0).await.unwrap();
        let order = Mutex::new(Vec::new());
        let request = async |client| {
            let _permits = limit.acquire(Flow::of(client), 0).await.unwrap();
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
    async fn a_request_without_space_in_the_queue_is_refused_at_once() {
        let limit = ConcurrencyLimit::new(0, 2);
        let began = Instant::now();
        let requests = join_all([1, 1, 1].map(|client| limit.acquire(Flow::of(client), 0)));
        let mut requests = std::pin::pin!(requests);
        assert!((&mut requests).now_or_never().is_none());
        assert_eq!(queued(&limit), 2);
        assert_eq!(limit.acquire(Flow::of(1), 0).await.map(drop), Err(ServerError::TooManyRequests));
        assert_eq!(began.elapsed(), Duration::ZERO);
        // The queue is left by timing out.
        requests.await;
        assert_eq!(queued(&limit), 0);
    }

    #[tokio::test]
    async fn a_place_of_a_request_that_was_cancelled_is_passed_on() {
        let limit = ConcurrencyLimit::new(1, 9);
        let first = limit.acquire(Flow::of(1), 0).await.unwrap();
        let mut second = Box::pin(limit.acquire(Flow::of(1), 0));
        let mut third = Box::pin(limit.acquire(Flow::of(2), 0));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        // The second gets the place and does not take it.
        drop(first);
        drop(second);
        drop(third.await.unwrap());
        assert_eq!((queued(&limit), limit.places.lock().free), (0, 1));
    }
}
