//! Admission control: which job renders now, which waits in the queue, and which is rejected.
//!
//! Invariant: at most `2 × slots` [`Slot`]s exist at a time, and at most `slots` while no job is long. While
//! other accounts wait, an account gets at most half of the slots. A dropped slot goes to the next job of the
//! queue, and a dropped waiter leaves the queue. A job that cannot end by its deadline, or had to wait and is not
//! likely to, gets no slot, and is rejected as soon as that is certain.

mod admitted_jobs;
mod slot;
mod slot_times;

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use platen_shared::{id::AccountId, refusal::Refusal};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use crate::{
    error::Refused,
    fair_queue::{FairQueue, Ticket},
};

pub(crate) use self::slot::Slot;
use self::{admitted_jobs::AdmittedJobs, slot_times::SlotTimes};

/// No job starts with less time until its deadline. A small page of an account that has a warm page takes about
/// this time on an idle machine.
const MIN_RENDER_TIME: Duration = Duration::from_millis(20);
/// A job that had to wait gets a slot only if it has the time left that recent jobs needed, up to this limit.
const MAX_REQUIRED_TIME: Duration = Duration::from_secs(2);
/// It requires no more than this part of the time that it had when it arrived, so that a job with a short deadline
/// can wait too.
const REQUIRED_DIVISOR: u32 = 4;
/// Bounds of the time for which further jobs of an account are likely to be refused, as the response says. It ends when
/// a quarter of the account's queued jobs have started, so that the queue does not run empty meanwhile.
const MIN_NOT_BEFORE: Duration = Duration::from_millis(20);
const MAX_NOT_BEFORE: Duration = Duration::from_secs(1);
const DRAINED_DIVISOR: usize = 4;
/// How often the queue is searched for jobs that cannot get a slot in time any more.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
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
    queue: FairQueue<AccountId, Waiter>,
    draining: bool,
    /// When the queue was last searched for jobs that cannot get a slot in time.
    swept: Instant,
    slot_times: SlotTimes,
}

/// A job in the queue.
#[derive(Debug)]
struct Waiter {
    since: Instant,
    deadline: Instant,
    /// Limit of the time that it requires when it gets a slot.
    max_required: Duration,
    /// Sends the id of the admitted job, or the reason for its rejection.
    grant: oneshot::Sender<Result<u64, Refused>>,
}

impl Waiter {
    fn reject(self, refused: Refused) {
        // Fails only if the caller has disconnected.
        let _ = self.grant.send(Err(refused));
    }
}

/// Limit of the time that a job requires which arrives with this time left.
fn max_required(time_left: Duration) -> Duration {
    (time_left / REQUIRED_DIVISOR).clamp(MIN_RENDER_TIME, MAX_REQUIRED_TIME)
}

/// Whether a job that starts now can end by its deadline.
pub(crate) fn can_end_by(deadline: Instant) -> bool {
    has_time(deadline, Duration::ZERO)
}

/// Whether a job that starts now and takes at least this time can end by its deadline.
pub(crate) fn has_time(deadline: Instant, needed: Duration) -> bool {
    deadline.saturating_duration_since(Instant::now()) >= needed.max(MIN_RENDER_TIME)
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
            swept: Instant::now(),
            slot_times: SlotTimes::default(),
        };
        Self(Arc::new(Inner { state: Mutex::new(state), busy: watch::channel(0).0 }))
    }

    /// Waits for a slot for as long as a job that gets it is likely to end by `deadline`.
    ///
    /// # Errors
    /// [`Refusal::Draining`], [`Refusal::QueueFull`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn admit(&self, account: &AccountId, deadline: Instant) -> Result<Slot, Refused> {
        let (mut position, latest) = {
            let mut state = self.state();
            if state.draining {
                return Err(Refusal::Draining.into());
            }
            if !can_end_by(deadline) {
                return Err(state.no_slot_in_time());
            }
            if state.queue.len() == 0 && state.jobs.may_run(account, false) {
                let id = self.take(&mut state, account.clone());
                return Ok(self.slot(id));
            }
            let time_left = deadline.saturating_duration_since(Instant::now());
            let max_required = max_required(time_left);
            let required = state.required(max_required);
            let excess = (state.expected_wait(account) + required).saturating_sub(time_left);
            if excess > Duration::ZERO {
                // A job with less time than that says nothing about further jobs, which have more.
                let not_before = (time_left >= MAX_NOT_BEFORE).then(|| not_before(excess));
                return Err(Refused { not_before, ..state.no_slot_in_time() });
            }
            let (grant, granted) = oneshot::channel();
            let joined =
                state.queue.join(account, Waiter { since: Instant::now(), deadline, max_required, grant });
            let Ok((ticket, evicted)) = joined else { return Err(state.queue_full(account)) };
            if let Some((account, evicted)) = evicted {
                evicted.reject(state.queue_full(&account));
            }
            // A slot may be free although jobs wait, because their accounts may not use it.
            self.dispatch(&mut state);
            (QueuePosition { admission: self, ticket, granted }, deadline - required)
        };
        match tokio::time::timeout_at(latest, &mut position.granted).await {
            // On a machine without free CPUs, or after it was stopped, this task may run long after the grant.
            Ok(Ok(Ok(id))) if can_end_by(deadline) => Ok(self.slot(id)),
            Ok(Ok(Ok(id))) => {
                let mut state = self.state();
                self.cancel(&mut state, id);
                Err(state.no_slot_in_time())
            }
            Ok(Ok(Err(refused))) => Err(refused),
            // Not reached: every grant is sent.
            Ok(Err(_)) => Err(Refusal::Draining.into()),
            Err(_) => Err(self.state().no_slot_in_time()),
        }
    }

    /// Rejects new jobs.
    pub(crate) fn drain(&self) {
        self.state().draining = true;
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

    /// For how long the job has waited that waits longest; zero if none waits.
    pub(crate) fn longest_wait(&self) -> Duration {
        let longest = self.state().queue.firsts().map(|waiter| waiter.since.elapsed()).max();
        longest.unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn slot(&self, id: u64) -> Slot {
        Slot::new(self.clone(), id)
    }

    fn take(&self, state: &mut State, account: AccountId) -> u64 {
        let id = state.jobs.start(account);
        self.0.busy.send_replace(state.jobs.len());
        id
    }

    fn release(&self, state: &mut State, id: u64) {
        if let Some(ended) = state.jobs.end(id) {
            state.slot_times.record(ended.held, ended.was_late);
        }
        self.0.busy.send_replace(state.jobs.len());
        self.dispatch(state);
        state.reject_late();
    }

    /// Takes back the slot of a job that has not started.
    fn cancel(&self, state: &mut State, id: u64) {
        state.jobs.cancel(id);
        self.0.busy.send_replace(state.jobs.len());
        self.dispatch(state);
    }

    /// Gives free slots to waiting jobs that may use them and can end by their deadlines.
    fn dispatch(&self, state: &mut State) {
        loop {
            let State { jobs, queue, .. } = state;
            let others_wait = queue.flows() > 1;
            let Some((account, waiter)) = queue.pop(|account| jobs.may_run(account, others_wait)) else {
                break;
            };
            if !state.can_start(&waiter, Instant::now()) {
                waiter.reject(state.no_slot_in_time());
                continue;
            }
            let id = self.take(state, account);
            if waiter.grant.send(Ok(id)).is_err() {
                state.jobs.cancel(id);
                self.0.busy.send_replace(state.jobs.len());
            }
        }
    }
}

impl State {
    /// The time that a job requires which had to wait: what recent jobs needed, within bounds.
    fn required(&self, max: Duration) -> Duration {
        self.slot_times.likely_max().clamp(MIN_RENDER_TIME, max)
    }

    /// Whether a queued job that gets its slot at this instant is likely to end by its deadline.
    fn can_start(&self, waiter: &Waiter, start: Instant) -> bool {
        waiter.deadline.saturating_duration_since(start) >= self.required(waiter.max_required)
    }

    /// The expected wait of a new job of this account.
    fn expected_wait(&self, account: &AccountId) -> Duration {
        self.expected_time(self.queue.ahead_of(account) + 1)
    }

    /// The expected time until this number of jobs has ended, by the average of recent jobs.
    fn expected_time(&self, jobs: usize) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "an estimate of small numbers")]
        let rounds = jobs as f64 / self.jobs.slots as f64;
        Duration::try_from_secs_f64(self.slot_times.average_seconds.unwrap_or(0.0) * rounds)
            .unwrap_or(Duration::MAX)
    }

    fn no_slot_in_time(&self) -> Refused {
        Refusal::NoSlotInTime { retry_after: self.retry_after() }.into()
    }

    /// The refusal of a job of this account, until a part of its queued jobs have started.
    fn queue_full(&self, account: &AccountId) -> Refused {
        let drained = self.queue.waiting_of(account).div_ceil(DRAINED_DIVISOR);
        let time = self.expected_time(self.queue.until_started(drained));
        let refusal = Refusal::QueueFull { retry_after: self.retry_after() };
        Refused { refusal, not_before: Some(not_before(time)) }
    }

    /// Rejects queued jobs that would not get a slot in time even if the jobs before them took half of the
    /// average.
    fn reject_late(&mut self) {
        if self.swept.elapsed() < SWEEP_INTERVAL {
            return;
        }
        self.swept = Instant::now();
        let half = self.expected_time(1) / 2;
        let likely_max = self.slot_times.likely_max();
        let swept = self.swept;
        let is_late = |ahead: usize, waiter: &Waiter| {
            let wait = half.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX));
            let required = likely_max.clamp(MIN_RENDER_TIME, waiter.max_required);
            wait + required > waiter.deadline.saturating_duration_since(swept)
        };
        for late in self.queue.remove_last_while(is_late) {
            late.reject(self.no_slot_in_time());
        }
    }

    fn retry_after(&self) -> u32 {
        let seconds = self.expected_time(self.queue.len() + 1).as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let seconds = seconds.ceil().clamp(1.0, MAX_RETRY_SECONDS) as u32;
        seconds
    }
}

/// The expected time until jobs of an account are accepted again, within its bounds.
fn not_before(expected: Duration) -> Duration {
    expected.clamp(MIN_NOT_BEFORE, MAX_NOT_BEFORE)
}

/// A position in the queue; removed when dropped.
struct QueuePosition<'a> {
    admission: &'a Admission,
    ticket: Ticket,
    granted: oneshot::Receiver<Result<u64, Refused>>,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        // Grants are sent under this lock. So a job that is not in the queue has its grant in the channel,
        // unless it has received it and has a slot.
        if state.queue.remove(self.ticket).is_none()
            && let Ok(Ok(id)) = self.granted.try_recv()
        {
            self.admission.cancel(&mut state, id);
        }
    }
}

#[cfg(test)]
mod tests;
