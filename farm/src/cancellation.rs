//! Cancellation of jobs by id, and whether a job's page had started by then.
//!
//! Invariant: a job that is cancelled before it arrives is cancelled on arrival, so the order of the two
//! requests does not matter. Cancelling a job drops its future.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Limit of remembered ids that were cancelled before their job arrived; it usually arrives within
/// milliseconds.
const MAX_EARLY_CANCELLATIONS: usize = 1_024;

/// Registry of running jobs that have an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningJobs(Arc<Mutex<Registry>>);

#[derive(Debug, Default)]
struct Registry {
    running: HashMap<String, CancellationToken>,
    /// Ids that were cancelled before their job arrived, oldest first.
    cancelled_early: VecDeque<String>,
}

/// A running job, registered until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningJob {
    /// When the head of its request arrived.
    pub(crate) arrived: Instant,
    jobs: RunningJobs,
    id: Option<String>,
    cancelled: CancellationToken,
}

impl RunningJobs {
    /// Registers a job. It cannot be cancelled if it has no id, or the id of another running job.
    pub(crate) fn begin(&self, id: Option<&str>) -> RunningJob {
        let cancelled = CancellationToken::new();
        let mut registry = self.0.lock();
        let id = id.filter(|id| !registry.running.contains_key(*id)).map(str::to_owned);
        if let Some(id) = &id {
            registry.running.insert(id.clone(), cancelled.clone());
            if let Some(index) = registry.cancelled_early.iter().position(|early| early == id) {
                registry.cancelled_early.remove(index);
                cancelled.cancel();
            }
        }
        drop(registry);
        RunningJob { arrived: Instant::now(), jobs: self.clone(), id, cancelled }
    }

    /// Cancels the job with this id, now or on its arrival.
    pub(crate) fn cancel(&self, id: &str) {
        let mut registry = self.0.lock();
        if let Some(job) = registry.running.get(id) {
            job.cancel();
        } else {
            registry.cancelled_early.push_back(id.to_owned());
            if registry.cancelled_early.len() > MAX_EARLY_CANCELLATIONS {
                registry.cancelled_early.pop_front();
            }
        }
    }
}

impl RunningJob {
    /// Runs `work` until it completes or the job is cancelled; `None` if it was cancelled.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(work).await
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.jobs.0.lock().running.remove(id);
        }
    }
}

/// A shared flag: whether a job's page has started to run.
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
        let (one, other, without_id) = (jobs.begin(Some("one")), jobs.begin(Some("other")), jobs.begin(None));
        jobs.cancel("one");
        assert_eq!(one.run(pending::<()>()).await, None);
        assert_eq!(other.run(ready(1)).await, Some(1));
        assert_eq!(without_id.run(ready(1)).await, Some(1));
        jobs.cancel("early");
        let early = jobs.begin(Some("early"));
        assert_eq!(early.run(pending::<()>()).await, None);
        drop((one, other, without_id, early));
        // The cancellation applied to that job only.
        assert_eq!(jobs.begin(Some("early")).run(ready(1)).await, Some(1));
        assert!(jobs.0.lock().running.is_empty());
    }

    #[tokio::test]
    async fn a_second_job_with_the_same_id_does_not_replace_the_first() {
        let jobs = RunningJobs::default();
        let first = jobs.begin(Some("one"));
        drop(jobs.begin(Some("one")));
        jobs.cancel("one");
        assert_eq!(first.run(pending::<()>()).await, None);
    }

    #[test]
    fn early_cancellations_are_bounded() {
        let jobs = RunningJobs::default();
        for number in 0..2 * MAX_EARLY_CANCELLATIONS {
            jobs.cancel(&number.to_string());
        }
        assert_eq!(jobs.0.lock().cancelled_early.len(), MAX_EARLY_CANCELLATIONS);
    }
}
