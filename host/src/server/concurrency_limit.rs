//! Limits concurrent requests and the bytes of their bodies.
//!
//! Invariant: requests are admitted in the order of arrival. One is refused after [`QUEUE_TIMEOUT`], or at
//! once when [`MAX_QUEUED`] others wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::server_error::ServerError;

/// Nearly all requests wait for the farm, with some kilobytes of memory each.
const MAX_CONCURRENT: usize = 512;
const MAX_QUEUED: usize = 1024;
/// Most clients give up or retry soon after this.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for all large bodies together. A component holds a body about four times, so this is a gigabyte at
/// most.
const MAX_LARGE_BODY_BYTES: u64 = 256 * MIB;
const MIB: u64 = 1024 * 1024;

pub(super) struct ConcurrencyLimit {
    requests: Arc<Semaphore>,
    /// One permit per mebibyte.
    large_bodies: Arc<Semaphore>,
    queued: AtomicUsize,
}

/// The permits of one request, which are returned when this is dropped.
/// A request that is not limited has none.
#[derive(Debug, Default)]
pub(super) struct Permits {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self::new(MAX_CONCURRENT)
    }
}

impl ConcurrencyLimit {
    fn new(max_concurrent: usize) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(max_concurrent)),
            large_bodies: Arc::new(Semaphore::new(mebibytes(MAX_LARGE_BODY_BYTES) as usize)),
            queued: AtomicUsize::new(0),
        }
    }

    /// Waits for the permits of a request; `large_body_bytes` is 0 for one with a small body.
    pub(super) async fn acquire(&self, large_body_bytes: u64) -> Result<Permits, ServerError> {
        let _queued = self.enqueue()?;
        let acquire = async {
            let body = match large_body_bytes {
                0 => None,
                bytes => {
                    Some(Arc::clone(&self.large_bodies).acquire_many_owned(mebibytes(bytes)).await.ok()?)
                }
            };
            let request = Arc::clone(&self.requests).acquire_owned().await.ok()?;
            Some(Permits { _permits: [Some(request), body] })
        };
        timeout(QUEUE_TIMEOUT, acquire).await.ok().flatten().ok_or(ServerError::TooManyRequests)
    }

    fn enqueue(&self) -> Result<Queued<'_>, ServerError> {
        let queued = Queued(&self.queued);
        if self.queued.fetch_add(1, Ordering::Relaxed) < MAX_QUEUED {
            Ok(queued)
        } else {
            Err(ServerError::TooManyRequests)
        }
    }
}

struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn mebibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.min(MAX_LARGE_BODY_BYTES).div_ceil(MIB)).expect("at most 256 mebibytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_over_the_limit_waits_and_is_then_refused() {
        let limit = ConcurrencyLimit::new(1);
        let first = limit.acquire(0).await.unwrap();
        assert_eq!(limit.acquire(0).await.map(drop), Err(ServerError::TooManyRequests));
        drop(first);
        limit.acquire(0).await.map(drop).unwrap();
        assert_eq!(limit.queued.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_share_a_limit_of_bytes() {
        let limit = ConcurrencyLimit::new(100);
        let mut permits = Vec::new();
        for _ in 0..8 {
            permits.push(limit.acquire(32 * MIB).await.unwrap());
        }
        assert_eq!(limit.acquire(2 * MIB).await.map(drop), Err(ServerError::TooManyRequests));
        limit.acquire(0).await.map(drop).unwrap();
        permits.pop();
        limit.acquire(2 * MIB).await.map(drop).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_over_the_length_of_the_queue_is_refused_at_once() {
        let limit = ConcurrencyLimit::new(0);
        limit.queued.store(MAX_QUEUED, Ordering::Relaxed);
        let began = tokio::time::Instant::now();
        assert_eq!(limit.acquire(0).await.map(drop), Err(ServerError::TooManyRequests));
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(limit.queued.load(Ordering::Relaxed), MAX_QUEUED);
    }
}
