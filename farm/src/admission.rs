//! Admission control: which job renders now, which waits in the queue, and which is rejected.
//!
//! Invariant: at most `2 × slots` [`Slot`]s exist at a time, and at most `slots` while no job is long. While
//! other accounts wait, an account gets at most half of the slots. A dropped slot goes to the next job of the
//! queue, and a dropped waiter leaves the queue. A job that cannot get a slot before its deadline is rejected
//! immediately.

mod admitted_jobs;
mod queue;

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use platen_shared::{id::AccountId, refusal::Refusal};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use self::{
    admitted_jobs::AdmittedJobs,
    queue::{FairQueue, Ticket},
};

/// Weight of the latest job in the moving average, which about the last ten jobs determine.
const LATEST_WEIGHT: f64 = 0.2;
/// Maximum of `retry-after`; the load changes faster than that.
const MAX_RETRY_SECONDS: f64 = 30.0;

/// Handle of the farm's admission control; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Slots in use.
    busy: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    jobs: AdmittedJobs,
    queue: FairQueue<AccountId, Grant>,
    draining: bool,
    /// Moving average of the time that a job holds its slot; `None` before the first job has ended.
    average_seconds: Option<f64>,
}

/// Sends the id of the admitted job, or the reason for its rejection.
type Grant = oneshot::Sender<Result<u64, Refusal>>;

/// The right to render one job; released when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    admission: Admission,
    id: u64,
}

impl Slot {
    /// Marks the job as long, so that another job may get a slot in addition.
    pub(crate) fn mark_long(&self) {
        let mut state = self.admission.state();
        state.jobs.mark_long(self.id);
        self.admission.dispatch(&mut state);
    }

    /// Marks the job as heavy: it takes much CPU time.
    pub(crate) fn mark_heavy(&self) {
        self.admission.state().jobs.mark_heavy(self.id);
    }

    /// Whether the job is heavy, or expected to be because a recent job of its account was.
    pub(crate) fn is_heavy(&self) -> bool {
        self.admission.state().jobs.is_heavy(self.id)
    }

    /// Completes when another job has a slot.
    pub(crate) async fn until_shared(&self) {
        let _ = self.admission.0.busy.subscribe().wait_for(|busy| *busy > 1).await;
    }
}

/// The use of slots and queue, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// Slots of jobs that are not long; long jobs allow up to as many in addition.
    pub(crate) slots: usize,
    /// Slots in use.
    pub(crate) busy: usize,
    /// Jobs in the queue.
    pub(crate) waiting: usize,
}

impl Admission {
    pub(crate) fn new(slots: usize, queue: usize) -> Self {
        let state = State {
            jobs: AdmittedJobs::new(slots),
            queue: FairQueue::new(queue),
            draining: false,
            average_seconds: None,
        };
        Self(Arc::new(Inner { state: Mutex::new(state), busy: watch::channel(0).0 }))
    }

    /// Waits for a slot until `deadline`.
    ///
    /// # Errors
    /// [`Refusal::Draining`], [`Refusal::QueueFull`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn admit(&self, account: &AccountId, deadline: Instant) -> Result<Slot, Refusal> {
        let mut position = {
            let mut state = self.state();
            if state.draining {
                return Err(Refusal::Draining);
            }
            if state.queue.len() == 0 && state.jobs.may_run(account, false) {
                let id = self.take(&mut state, account.clone());
                return Ok(self.slot(id));
            }
            let time_left = deadline.saturating_duration_since(Instant::now());
            if state.expected_wait(account) > time_left {
                return Err(Refusal::NoSlotInTime { retry_after: state.retry_after() });
            }
            let (grant, granted) = oneshot::channel();
            let joined = state.queue.join(account, grant);
            let queue_full = Refusal::QueueFull { retry_after: state.retry_after() };
            let Some((ticket, evicted)) = joined else { return Err(queue_full) };
            if let Some(evicted) = evicted {
                let _ = evicted.send(Err(queue_full));
            }
            // A slot may be free although jobs wait, because their accounts may not use it.
            self.dispatch(&mut state);
            QueuePosition { admission: self, ticket, granted }
        };
        match tokio::time::timeout_at(deadline, &mut position.granted).await {
            Ok(Ok(Ok(id))) => Ok(self.slot(id)),
            Ok(Ok(Err(refusal))) => Err(refusal),
            // Not reached: every grant is sent.
            Ok(Err(_)) => Err(Refusal::Draining),
            Err(_) => Err(Refusal::NoSlotInTime { retry_after: self.state().retry_after() }),
        }
    }

    /// Rejects new jobs and those in the queue.
    pub(crate) fn drain(&self) {
        let mut state = self.state();
        state.draining = true;
        while let Some((_, grant)) = state.queue.pop(|_| true) {
            let _ = grant.send(Err(Refusal::Draining));
        }
    }

    /// Whether [`Admission::drain`] was called.
    pub(crate) fn is_draining(&self) -> bool {
        self.state().draining
    }

    /// Completes when no slot is in use.
    pub(crate) async fn idle(&self) {
        let _ = self.0.busy.subscribe().wait_for(|busy| *busy == 0).await;
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        let state = self.state();
        Occupancy { slots: state.jobs.slots, busy: state.jobs.len(), waiting: state.queue.len() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn slot(&self, id: u64) -> Slot {
        Slot { admission: self.clone(), id }
    }

    fn take(&self, state: &mut State, account: AccountId) -> u64 {
        let id = state.jobs.start(account);
        self.0.busy.send_replace(state.jobs.len());
        id
    }

    fn release(&self, state: &mut State, id: u64) {
        if let Some(held) = state.jobs.end(id) {
            let held = held.as_secs_f64();
            let average =
                state.average_seconds.map_or(held, |average| average + LATEST_WEIGHT * (held - average));
            state.average_seconds = Some(average);
        }
        self.0.busy.send_replace(state.jobs.len());
        self.dispatch(state);
    }

    /// Gives free slots to waiting jobs that may use them.
    fn dispatch(&self, state: &mut State) {
        loop {
            let State { jobs, queue, .. } = state;
            let others_wait = queue.accounts() > 1;
            let Some((account, grant)) = queue.pop(|account| jobs.may_run(account, others_wait)) else {
                break;
            };
            let id = self.take(state, account);
            if grant.send(Ok(id)).is_err() {
                state.jobs.cancel(id);
                self.0.busy.send_replace(state.jobs.len());
            }
        }
    }
}

impl State {
    /// The expected wait of a new job of this account.
    fn expected_wait(&self, account: &AccountId) -> Duration {
        self.expected_time(self.queue.ahead_of(account) + 1)
    }

    /// The expected time until this number of jobs has ended, by the average of recent jobs.
    fn expected_time(&self, jobs: usize) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "an estimate of small numbers")]
        let rounds = jobs as f64 / self.jobs.slots as f64;
        Duration::try_from_secs_f64(self.average_seconds.unwrap_or(0.0) * rounds).unwrap_or(Duration::MAX)
    }

    fn retry_after(&self) -> u32 {
        let seconds = self.expected_time(self.queue.len() + 1).as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let seconds = seconds.ceil().clamp(1.0, MAX_RETRY_SECONDS) as u32;
        seconds
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        self.admission.release(&mut state, self.id);
    }
}

/// A position in the queue; removed when dropped.
struct QueuePosition<'a> {
    admission: &'a Admission,
    ticket: Ticket,
    granted: oneshot::Receiver<Result<u64, Refusal>>,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        // Grants are sent under this lock. So a job that is not in the queue has its grant in the channel,
        // unless it has received it and has a slot.
        if state.queue.remove(self.ticket).is_none()
            && let Ok(Ok(id)) = self.granted.try_recv()
        {
            self.admission.release(&mut state, id);
        }
    }
}

#[cfg(test)]
mod tests;
