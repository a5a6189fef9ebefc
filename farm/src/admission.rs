//! Who renders now, who waits, and who is turned away at once.
//!
//! Invariant: at most `slots` [`Slot`]s exist at a time; a slot that is dropped goes to whose turn
//! it is; a future that is dropped while it waits leaves no trace. Whoever cannot be served in
//! time learns so now and not at the deadline. Left to others: what is done with a slot.

mod queue;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use platen_shared::{id::AccountId, refusal::Refusal};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use self::queue::{FairQueue, Joined, Ticket};

/// How much the latest job counts in the average: about the last ten matter.
const LATEST_WEIGHT: f64 = 0.2;
/// The longest a caller is told to stay away; traffic changes faster than that.
const LONGEST_RETRY_SECONDS: f64 = 30.0;

/// The door of the farm: a cheap handle.
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
    free: usize,
    queue: FairQueue<AccountId, Grant>,
    draining: bool,
    /// Average seconds that a slot is held; `None` before the first job is done.
    pace: Option<f64>,
}

type Grant = oneshot::Sender<Result<(), Refusal>>;

/// A right to render, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    admission: Admission,
    since: Instant,
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
        let state = State { free: slots, queue: FairQueue::new(queue), draining: false, pace: None };
        Self(Arc::new(Inner { slots, state: Mutex::new(state), busy: watch::channel(0).0 }))
    }

    /// Waits for a slot until `deadline`.
    ///
    /// # Errors
    /// [`Refusal::Draining`], [`Refusal::QueueFull`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn admit(&self, account: &AccountId, deadline: Instant) -> Result<Slot, Refusal> {
        let mut place = {
            let mut state = self.state();
            if state.draining {
                return Err(Refusal::Draining);
            }
            if state.free > 0 {
                self.take(&mut state);
                return Ok(self.slot());
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
            Place { admission: self, ticket, granted }
        };
        match tokio::time::timeout_at(deadline, &mut place.granted).await {
            Ok(Ok(Ok(()))) => Ok(self.slot()),
            Ok(Ok(Err(refusal))) => Err(refusal),
            // Nobody drops a grant unsent, but a farm that did would not be available.
            Ok(Err(_)) => Err(Refusal::Draining),
            Err(_) => Err(Refusal::NoSlotInTime { retry_after: self.state().retry_after(self.0.slots) }),
        }
    }

    /// Admits nobody any more and sends home who waits.
    pub(crate) fn drain(&self) {
        let mut state = self.state();
        state.draining = true;
        while let Some(grant) = state.queue.pop() {
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
        Occupancy { slots: self.0.slots, busy: self.0.slots - state.free, waiting: state.queue.len() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) -> Slot {
        Slot { admission: self.clone(), since: Instant::now() }
    }

    fn take(&self, state: &mut State) {
        state.free -= 1;
        self.0.busy.send_replace(self.0.slots - state.free);
    }

    fn give_back(&self, state: &mut State) {
        state.free += 1;
        self.0.busy.send_replace(self.0.slots - state.free);
        while state.free > 0 {
            let Some(grant) = state.queue.pop() else { break };
            if grant.send(Ok(())).is_ok() {
                self.take(state);
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
        let held = self.since.elapsed().as_secs_f64();
        let mut state = self.admission.state();
        state.pace = Some(state.pace.map_or(held, |pace| pace + LATEST_WEIGHT * (held - pace)));
        self.admission.give_back(&mut state);
    }
}

/// A place in the queue, left when dropped.
struct Place<'a> {
    admission: &'a Admission,
    ticket: Ticket,
    granted: oneshot::Receiver<Result<(), Refusal>>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        // Grants are sent under this lock: either it still waits, or its grant is there to be
        // found, unless it has been received and turned into a slot.
        if state.queue.remove(self.ticket).is_none() && matches!(self.granted.try_recv(), Ok(Ok(()))) {
            self.admission.give_back(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::task::{Context, Waker};

    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::from_text(name)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    fn occupancy(slots: usize, busy: usize, waiting: usize) -> Occupancy {
        Occupancy { slots, busy, waiting }
    }

    #[tokio::test]
    async fn a_slot_goes_from_hand_to_hand() {
        let admission = Admission::new(1, 8);
        let first = admission.admit(&account("a"), soon()).await.unwrap();
        let waiting = tokio::spawn({
            let admission = admission.clone();
            async move { admission.admit(&account("b"), soon()).await }
        });
        while admission.occupancy().waiting == 0 {
            tokio::task::yield_now().await;
        }
        drop(first);
        let second = waiting.await.unwrap().unwrap();
        assert_eq!(admission.occupancy(), occupancy(1, 1, 0));
        drop(second);
        admission.idle().await;
        assert_eq!(admission.occupancy(), occupancy(1, 0, 0));
    }

    #[tokio::test]
    async fn whoever_leaves_takes_nothing_along() {
        let admission = Admission::new(1, 8);
        let slot = admission.admit(&account("a"), soon()).await.unwrap();
        let owner = account("b");
        let mut context = Context::from_waker(Waker::noop());
        // One leaves while it waits, one after the slot was given to it but before it knew.
        let mut waits = Box::pin(admission.admit(&owner, soon()));
        let mut wins = Box::pin(admission.admit(&owner, soon()));
        assert!(waits.as_mut().poll(&mut context).is_pending());
        assert!(wins.as_mut().poll(&mut context).is_pending());
        drop(waits);
        assert_eq!(admission.occupancy(), occupancy(1, 1, 1));
        drop(slot);
        assert_eq!(admission.occupancy(), occupancy(1, 1, 0));
        drop(wins);
        assert_eq!(admission.occupancy(), occupancy(1, 0, 0));
    }

    #[tokio::test]
    async fn full_is_full_at_once() {
        let admission = Admission::new(1, 0);
        let _slot = admission.admit(&account("a"), soon()).await.unwrap();
        let refusal = admission.admit(&account("b"), soon()).await.unwrap_err();
        assert_eq!(refusal, Refusal::QueueFull { retry_after: 1 });
    }

    #[tokio::test]
    async fn one_account_cannot_fill_the_queue_for_another() {
        let admission = Admission::new(1, 2);
        let slot = admission.admit(&account("a"), soon()).await.unwrap();
        let greedy = account("a");
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(admission.admit(&greedy, soon()));
        let mut second = Box::pin(admission.admit(&greedy, soon()));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        let other = account("b");
        let mut third = Box::pin(admission.admit(&other, soon()));
        assert!(third.as_mut().poll(&mut context).is_pending());
        assert!(matches!(second.await, Err(Refusal::QueueFull { .. })));
        drop(slot);
        drop(first.await.unwrap());
        third.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_nothing() {
        let admission = Admission::new(1, 8);
        let slot = admission.admit(&account("a"), soon()).await.unwrap();
        let late = admission.admit(&account("a"), Instant::now() + Duration::from_millis(5)).await;
        assert_eq!(late.unwrap_err(), Refusal::NoSlotInTime { retry_after: 1 });
        // Jobs take 20 s here, so 10 s are not enough: no need to wait and see.
        tokio::time::advance(Duration::from_secs(20)).await;
        drop(slot);
        let _slot = admission.admit(&account("a"), soon()).await.unwrap();
        let before = Instant::now();
        let hopeless = admission.admit(&account("a"), before + Duration::from_secs(10)).await;
        assert_eq!(hopeless.unwrap_err(), Refusal::NoSlotInTime { retry_after: 21 });
        assert_eq!(Instant::now(), before);
    }

    #[tokio::test]
    async fn draining_sends_everybody_home_and_ends_when_the_last_is_done() {
        let admission = Admission::new(1, 8);
        let slot = admission.admit(&account("a"), soon()).await.unwrap();
        let owner = account("b");
        let mut waits = Box::pin(admission.admit(&owner, soon()));
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        admission.drain();
        assert_eq!(waits.await.unwrap_err(), Refusal::Draining);
        assert_eq!(admission.admit(&owner, soon()).await.unwrap_err(), Refusal::Draining);
        let mut idle = Box::pin(admission.idle());
        assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(slot);
        idle.await;
    }
}
