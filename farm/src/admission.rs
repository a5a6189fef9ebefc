//! Admission control: which job renders now, which waits, and which is rejected at once.
//!
//! Invariant: at most `2 × slots` [`Slot`]s exist at a time, and at most `slots` while no job is long;
//! while other accounts wait, one account gets no more than half of the slots; a slot that is dropped
//! goes to the job whose turn it is; a future that is dropped while it waits leaves no trace. A job that
//! cannot be served in time is rejected when that is known, not at its deadline.

mod queue;
mod running;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use platen_shared::{id::AccountId, refusal::Refusal};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use self::{
    queue::{FairQueue, Joined, Ticket},
    running::RunningJobs,
};

/// How much the latest job counts in the average: about the last ten matter.
const LATEST_WEIGHT: f64 = 0.2;
/// The longest a caller is told to stay away; traffic changes faster than that.
const LONGEST_RETRY_SECONDS: f64 = 30.0;

/// Admission control of the farm: a cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    slots: usize,
    state: Mutex<State>,
    busy: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    jobs: RunningJobs,
    queue: FairQueue<AccountId, Grant>,
    draining: bool,
    /// Average seconds that a slot is held; `None` before the first job is done.
    pace: Option<f64>,
}

type Grant = oneshot::Sender<Result<u64, Refusal>>;

/// A right to render, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    admission: Admission,
    id: u64,
}

impl Slot {
    /// Says that the job runs for long, so that others get a slot beside it.
    pub(crate) fn mark_long(&self) {
        let mut state = self.admission.state();
        state.jobs.mark_long(self.id);
        self.admission.dispatch(&mut state);
    }

    /// Says that the job takes much CPU time.
    pub(crate) fn mark_heavy(&self) {
        self.admission.state().jobs.mark_heavy(self.id);
    }

    /// Whether the job takes much CPU time, or is expected to because a long one of its account did.
    pub(crate) fn is_heavy(&self) -> bool {
        self.admission.state().jobs.is_heavy(self.id)
    }

    /// Completes when other jobs run beside this one.
    pub(crate) async fn until_shared(&self) {
        let _ = self.admission.0.busy.subscribe().wait_for(|busy| *busy > 1).await;
    }
}

/// What the farm is doing, for its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// Slots there are.
    pub(crate) slots: usize,
    /// Slots in use.
    pub(crate) busy: usize,
    /// Jobs that wait.
    pub(crate) waiting: usize,
}

impl Admission {
    pub(crate) fn new(slots: usize, queue: usize) -> Self {
        let state = State {
            jobs: RunningJobs::new(slots),
            queue: FairQueue::new(queue),
            draining: false,
            pace: None,
        };
        Self(Arc::new(Inner { slots, state: Mutex::new(state), busy: watch::channel(0).0 }))
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
            if state.wait_of(account, self.0.slots) > deadline.saturating_duration_since(Instant::now()) {
                return Err(Refusal::NoSlotInTime { retry_after: state.retry_after(self.0.slots) });
            }
            let (grant, granted) = oneshot::channel();
            let ticket = match state.queue.join(account, grant) {
                Joined::Waiting(ticket) => ticket,
                Joined::Instead(ticket, out) => {
                    let _ = out.send(Err(state.queue_full(self.0.slots)));
                    ticket
                }
                Joined::Full(_) => return Err(state.queue_full(self.0.slots)),
            };
            // Those before it may wait for another reason than a lack of slots.
            self.dispatch(&mut state);
            QueuePosition { admission: self, ticket, granted }
        };
        match tokio::time::timeout_at(deadline, &mut position.granted).await {
            Ok(Ok(Ok(id))) => Ok(self.slot(id)),
            Ok(Ok(Err(refusal))) => Err(refusal),
            // A grant is never dropped unsent; a farm that did so would not be available.
            Ok(Err(_)) => Err(Refusal::Draining),
            Err(_) => Err(Refusal::NoSlotInTime { retry_after: self.state().retry_after(self.0.slots) }),
        }
    }

    /// Admits no more jobs and rejects those that wait.
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
        Occupancy { slots: self.0.slots, busy: state.jobs.len(), waiting: state.queue.len() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            state.pace = Some(state.pace.map_or(held, |pace| pace + LATEST_WEIGHT * (held - pace)));
        }
        self.0.busy.send_replace(state.jobs.len());
        self.dispatch(state);
    }

    /// Gives slots to waiting jobs, as far as there are any for them.
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
    /// How long a newcomer of this account would wait, by what jobs took lately.
    fn wait_of(&self, account: &AccountId, slots: usize) -> Duration {
        self.estimate(self.queue.ahead_of(account) + 1, slots)
    }

    fn estimate(&self, jobs: usize, slots: usize) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "an estimate of small numbers")]
        let rounds = jobs as f64 / slots as f64;
        Duration::try_from_secs_f64(self.pace.unwrap_or(0.0) * rounds).unwrap_or(Duration::MAX)
    }

    fn retry_after(&self, slots: usize) -> u32 {
        let seconds = self.estimate(self.queue.len() + 1, slots).as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let seconds = seconds.ceil().clamp(1.0, LONGEST_RETRY_SECONDS) as u32;
        seconds
    }

    fn queue_full(&self, slots: usize) -> Refusal {
        Refusal::QueueFull { retry_after: self.retry_after(slots) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        self.admission.release(&mut state, self.id);
    }
}

/// A position in the queue, left when dropped.
struct QueuePosition<'a> {
    admission: &'a Admission,
    ticket: Ticket,
    granted: oneshot::Receiver<Result<u64, Refusal>>,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        // Grants are sent under this lock: either it still waits, or its grant is there to be
        // found, unless it has been received and turned into a slot.
        if state.queue.remove(self.ticket).is_none()
            && let Ok(Ok(id)) = self.granted.try_recv()
        {
            self.admission.release(&mut state, id);
        }
    }
}

#[cfg(test)]
mod tests;
