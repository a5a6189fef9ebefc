//! Limits the requests that components handle at once.
//!
//! Invariant: flows are served in turn. A request is refused after [`QUEUE_TIMEOUT`], or at once when the queue is full.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use platen_program::{FairQueue, Ticket};
use tokio::{sync::oneshot, time::timeout};

use super::server_error::ServerError;
use crate::db::Flow;

/// Nearly all requests wait for the farm, with some kilobytes of memory each.
const MAX_CONCURRENT: usize = 512;
const MAX_QUEUED: usize = 1024;
/// Most clients give up or retry soon after this.
pub(super) const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct ConcurrencyLimit(Arc<Mutex<Places>>);

struct Places {
    free: usize,
    queue: FairQueue<Flow, oneshot::Sender<Place>>,
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self::new(MAX_CONCURRENT, MAX_QUEUED)
    }
}

impl ConcurrencyLimit {
    fn new(free: usize, max_queued: usize) -> Self {
        Self(Arc::new(Mutex::new(Places { free, queue: FairQueue::new(max_queued) })))
    }

    /// Waits for the turn of a request of a flow.
    pub(super) async fn acquire(&self, flow: Flow) -> Result<Place, ServerError> {
        let mut queued = {
            let mut places = self.0.lock();
            if places.free > 0 {
                places.free -= 1;
                return Ok(Place(Some(Arc::clone(&self.0))));
            }
            let (sender, receiver) = oneshot::channel();
            let (ticket, _) = places.queue.join(&flow, sender).map_err(|_| ServerError::TooManyRequests)?;
            Queued { places: &self.0, ticket, receiver: Some(receiver) }
        };
        let place = timeout(QUEUE_TIMEOUT, queued.receiver.as_mut().expect("it is taken when dropped")).await;
        // The sender is dropped if another flow takes the space in the queue.
        place.ok().and_then(Result::ok).ok_or(ServerError::TooManyRequests)
    }
}

/// A request in the queue, which leaves it when this is dropped.
struct Queued<'a> {
    places: &'a Mutex<Places>,
    ticket: Ticket,
    receiver: Option<oneshot::Receiver<Place>>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        // A place that was not received is passed on here.
        drop(self.receiver.take());
        self.places.lock().queue.remove(self.ticket);
    }
}

/// The right to be handled by a component.
pub(super) struct Place(Option<Arc<Mutex<Places>>>);

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

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};
    use tokio::time::Instant;

    use super::*;

    fn state(limit: &ConcurrencyLimit) -> (usize, usize) {
        let places = limit.0.lock();
        (places.queue.len(), places.free)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_requests_does_not_delay_another_one() {
        let limit = ConcurrencyLimit::new(1, 99);
        let first = limit.acquire(Flow::of(1)).await.ok();
        let order = Mutex::new(Vec::new());
        let request = async |client| {
            let _place = limit.acquire(Flow::of(client)).await.ok().unwrap();
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
        let limit = ConcurrencyLimit::new(0, 2);
        let began = Instant::now();
        let requests = join_all([1, 1].map(|client| limit.acquire(Flow::of(client))));
        let mut requests = std::pin::pin!(requests);
        assert!((&mut requests).now_or_never().is_none());
        assert!(limit.acquire(Flow::of(1)).await.is_err());
        assert_eq!((began.elapsed(), state(&limit)), (Duration::ZERO, (2, 0)));
        assert!(requests.await.iter().all(Result::is_err));
        assert_eq!((began.elapsed(), state(&limit)), (QUEUE_TIMEOUT, (0, 0)));
    }

    #[tokio::test]
    async fn a_place_of_a_request_that_was_cancelled_is_passed_on() {
        let limit = ConcurrencyLimit::new(1, 9);
        let first = limit.acquire(Flow::of(1)).await.ok();
        let mut second = Box::pin(limit.acquire(Flow::of(1)));
        let mut third = Box::pin(limit.acquire(Flow::of(2)));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        // The second gets the place and does not take it.
        drop(first);
        drop(second);
        drop(third.await);
        assert_eq!(state(&limit), (0, 1));
    }
}
