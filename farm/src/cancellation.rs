//! Cancelling a job by its id, and whether its page had begun to run by then.
//!
//! Invariant: a job that is cancelled before it arrives is cancelled when it does, so the order of the
//! two requests does not matter. A cancelled job ends because its future is dropped.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

/// Ids of jobs that were cancelled before they arrived. A job follows its cancellation within moments.
const MAX_EARLY: usize = 1_024;

/// Jobs under way that have an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningJobs(Arc<Mutex<Registry>>);

#[derive(Debug, Default)]
struct Registry {
    running: HashMap<String, CancellationToken>,
    early: VecDeque<String>,
}

/// A job under way: the right to be cancelled, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningJob {
    jobs: RunningJobs,
    id: Option<String>,
    cancelled: CancellationToken,
}

impl RunningJobs {
    /// A job begins. Without an id it cannot be cancelled, nor by an id that another job has.
    pub(crate) fn begin(&self, id: Option<&str>) -> RunningJob {
        let cancelled = CancellationToken::new();
        let mut registry = self.lock();
        let id = id.filter(|id| !registry.running.contains_key(*id)).map(str::to_owned);
        if let Some(id) = &id {
            registry.running.insert(id.clone(), cancelled.clone());
            if let Some(place) = registry.early.iter().position(|early| early == id) {
                registry.early.remove(place);
                cancelled.cancel();
            }
        }
        drop(registry);
        RunningJob { jobs: self.clone(), id, cancelled }
    }

    /// Cancels the job of this id, now or when it arrives.
    pub(crate) fn cancel(&self, id: &str) {
        let mut registry = self.lock();
        if let Some(job) = registry.running.get(id) {
            job.cancel();
        } else {
            registry.early.push_back(id.to_owned());
            if registry.early.len() > MAX_EARLY {
                registry.early.pop_front();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningJob {
    /// Does `work` unless, or until, the job is cancelled.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(work).await
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.jobs.lock().running.remove(id);
        }
    }
}

/// Whether a job's page has begun to run: a handle for the one who asks, and one for the one who knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageStarted(Arc<AtomicBool>);

impl PageStarted {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_job_is_cancelled_by_its_id_before_and_after_it_arrives() {
        let jobs = RunningJobs::default();
        let (one, other, nameless) = (jobs.begin(Some("one")), jobs.begin(Some("other")), jobs.begin(None));
        jobs.cancel("one");
        assert_eq!(one.run(pending::<()>()).await, None);
        assert_eq!(other.run(ready(1)).await, Some(1));
        assert_eq!(nameless.run(ready(1)).await, Some(1));
        jobs.cancel("early");
        let early = jobs.begin(Some("early"));
        assert_eq!(early.run(pending::<()>()).await, None);
        drop((one, other, nameless, early));
        // It was for that job only.
        assert_eq!(jobs.begin(Some("early")).run(ready(1)).await, Some(1));
        assert!(jobs.lock().running.is_empty());
    }

    #[tokio::test]
    async fn a_second_job_of_an_id_does_not_take_it_from_the_first() {
        let jobs = RunningJobs::default();
        let first = jobs.begin(Some("one"));
        drop(jobs.begin(Some("one")));
        jobs.cancel("one");
        assert_eq!(first.run(pending::<()>()).await, None);
    }

    #[test]
    fn early_cancellations_are_bounded() {
        let jobs = RunningJobs::default();
        for number in 0..2 * MAX_EARLY {
            jobs.cancel(&number.to_string());
        }
        assert_eq!(jobs.lock().early.len(), MAX_EARLY);
    }
}
