//! How many requests, and how much of their bodies, are there at once.
//!
//! Invariant: a request is let in, in the order of arrival, or refused after [`PATIENCE`], or at
//! once when [`WAITING`] others wait already.

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

use super::answer::Problem;

/// Requests in components at once: nearly all of them wait for the farm, at some kilobytes each.
const INSIDE: usize = 512;
/// Requests that wait to be let in.
const WAITING: usize = 1024;
/// How long one waits: a client gives up or tries again soon after.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of large bodies at once. A component holds a body about four times over, so this is a
/// gigabyte at the worst.
const LARGE_BYTES: u64 = 256 * MIB;
const MIB: u64 = 1024 * 1024;

/// The gate.
pub(super) struct Gate {
    inside: Arc<Semaphore>,
    large: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A request's place inside, given back when dropped.
#[derive(Debug)]
pub(super) struct Permits {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl Permits {
    /// For what takes no place.
    pub(super) fn none() -> Self {
        Self { _permits: [None, None] }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new(INSIDE)
    }
}

impl Gate {
    fn new(inside: usize) -> Self {
        Self {
            inside: Arc::new(Semaphore::new(inside)),
            large: Arc::new(Semaphore::new(mebibytes(LARGE_BYTES) as usize)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Lets a request in whose body counts as `large` bytes; 0 if it is small.
    pub(super) async fn enter(&self, large: u64) -> Result<Permits, Problem> {
        let _waiting = self.wait()?;
        let enter = async {
            let large = match large {
                0 => None,
                bytes => Some(Arc::clone(&self.large).acquire_many_owned(mebibytes(bytes)).await.ok()?),
            };
            let inside = Arc::clone(&self.inside).acquire_owned().await.ok()?;
            Some(Permits { _permits: [Some(inside), large] })
        };
        timeout(PATIENCE, enter).await.ok().flatten().ok_or(Problem::Busy)
    }

    fn wait(&self) -> Result<Waiting<'_>, Problem> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < WAITING { Ok(waiting) } else { Err(Problem::Busy) }
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn mebibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.min(LARGE_BYTES).div_ceil(MIB)).expect("the bound is 256")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn over_the_bound_one_waits_and_then_is_refused() {
        let gate = Gate::new(1);
        let first = gate.enter(0).await.unwrap();
        assert_eq!(gate.enter(0).await.map(drop), Err(Problem::Busy));
        drop(first);
        gate.enter(0).await.map(drop).unwrap();
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_share_a_bound_of_bytes() {
        let gate = Gate::new(100);
        let mut inside = Vec::new();
        for _ in 0..8 {
            inside.push(gate.enter(32 * MIB).await.unwrap());
        }
        assert_eq!(gate.enter(2 * MIB).await.map(drop), Err(Problem::Busy));
        gate.enter(0).await.map(drop).unwrap();
        inside.pop();
        gate.enter(2 * MIB).await.map(drop).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn past_the_places_to_wait_one_is_refused_at_once() {
        let gate = Gate::new(0);
        gate.waiting.store(WAITING, Ordering::Relaxed);
        let began = tokio::time::Instant::now();
        assert_eq!(gate.enter(0).await.map(drop), Err(Problem::Busy));
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(gate.waiting.load(Ordering::Relaxed), WAITING);
    }
}
