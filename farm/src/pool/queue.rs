//! The queue of a pool: how a job gets a browser.
//!
//! Invariant: a dropped lease frees its browser for the next job, and a dropped waiter leaves the queue.

use std::{ops::Deref, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use platen_program::Ticket;
use platen_shared::refusal::Refusal;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    running::Candidate,
    state::{Grant, MAX_NOT_BEFORE, MIN_RENDER_TIME, State, Waiter, max_required, not_before},
};
use crate::{
    error::{LaunchError, Refused},
    metrics::Occupancy,
};

/// Whether a job that starts now can end by its deadline.
pub(crate) fn can_end_by(deadline: Instant) -> bool {
    has_time(deadline, Duration::ZERO)
}

/// Whether a job that starts now and takes at least this time can end by its deadline.
pub(crate) fn has_time(deadline: Instant, needed: Duration) -> bool {
    deadline.saturating_duration_since(Instant::now()) >= needed.max(MIN_RENDER_TIME)
}

#[derive(Debug)]
pub(crate) struct JobQueue<B: Candidate>(Arc<Mutex<State<B>>>);

impl<B: Candidate> Clone for JobQueue<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A browser that one job has until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease<B: Candidate> {
    queue: JobQueue<B>,
    pooled: Arc<B>,
    id: u64,
}

impl<B: Candidate> Lease<B> {
    /// Marks the job as long, so that another job may run in addition.
    pub(crate) fn mark_long(&self) {
        let mut state = self.queue.state();
        state.running.mark_long(self.id);
        state.dispatch();
    }
}

impl<B: Candidate> Deref for Lease<B> {
    type Target = Arc<B>;

    fn deref(&self) -> &Arc<B> {
        &self.pooled
    }
}

impl<B: Candidate> Drop for Lease<B> {
    fn drop(&mut self) {
        self.queue.state().end(self.id);
    }
}

impl<B: Candidate> JobQueue<B> {
    pub(super) fn new(slots: usize, queue: usize) -> Self {
        Self(Arc::new(Mutex::new(State::new(slots, queue))))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<B>> {
        self.0.lock()
    }

    /// Waits for a browser for as long as a job that gets it is likely to end by `deadline`. Fails with
    /// [`Refusal::Draining`], [`Refusal::NoBrowser`], [`Refusal::QueueFull`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn lease(&self, request: B::Request, deadline: Instant) -> Result<Lease<B>, Refused> {
        let (position, page_until, latest) = {
            let mut state = self.state();
            if state.draining {
                return Err(Refusal::Draining.into());
            }
            if state.has_failed() {
                return Err(Refusal::NoBrowser.into());
            }
            if !can_end_by(deadline) {
                return Err(state.no_slot_in_time());
            }
            let account = B::account(&request).clone();
            let time_left = deadline.saturating_duration_since(Instant::now());
            let max_required = max_required(time_left);
            let required = state.required(max_required);
            let wait = state.expected_time(state.queue.ahead_of(&account) + 1);
            let excess = (wait + required).saturating_sub(time_left);
            let waits = excess.is_zero()
                && !state.queue.is_full()
                && state.running.have_page_of(&request, &state.browsers);
            if !waits && let Some(grant) = state.start_at_once(&request) {
                return Ok(self.granted(grant));
            }
            if excess > Duration::ZERO {
                // A job with less time than that says nothing about further jobs, which have more.
                let not_before = (time_left >= MAX_NOT_BEFORE).then(|| not_before(excess));
                return Err(Refused { not_before, ..state.no_slot_in_time() });
            }
            let (waiter, granted) = Waiter::new(request, deadline, max_required);
            let page_until = waiter.page_until;
            let Ok((ticket, evicted)) = state.queue.join(&account, waiter) else {
                return Err(state.queue_full(&account));
            };
            if let Some((account, evicted)) = evicted {
                evicted.reject(state.queue_full(&account));
            }
            // Another browser may start for it.
            state.dispatch();
            (Position { queue: self, ticket: Some(ticket), granted }, page_until, deadline - required)
        };
        position.wait(page_until, latest, deadline).await
    }

    /// Waits for a browser for a job that has been accepted before, ahead of the queue. Fails with [`Refusal::NoBrowser`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn lease_again(
        &self,
        request: B::Request,
        deadline: Instant,
    ) -> Result<Lease<B>, Refused> {
        let (waiter, granted) = Waiter::new(request, deadline, MIN_RENDER_TIME);
        self.state().retry(waiter);
        Position { queue: self, ticket: None, granted }.wait(deadline, deadline, deadline).await
    }

    fn granted(&self, grant: Grant<B>) -> Lease<B> {
        Lease { queue: self.clone(), pooled: grant.browser, id: grant.id }
    }

    async fn until<T>(&self, find: impl Fn(&mut State<B>) -> Option<T>) -> T {
        let mut changes = self.state().changes.subscribe();
        loop {
            if let Some(found) = find(&mut self.state()) {
                return found;
            }
            let _ = changes.changed().await;
        }
    }

    /// Waits for the first browser; the error of one start, if all have failed.
    pub(super) async fn first(&self) -> Result<Arc<B>, LaunchError> {
        let find = |state: &mut State<B>| match state.browsers.first() {
            Some(browser) => Some(Ok(Arc::clone(browser))),
            None if state.has_failed() => state.failures.pop_first().map(|(_, error)| Err(error)),
            None => None,
        };
        self.until(find).await
    }

    pub(crate) fn drain(&self) {
        self.state().draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.state().draining
    }

    pub(crate) fn ready(&self) -> usize {
        self.state().browsers.iter().filter(|browser| browser.is_usable()).count()
    }

    /// Completes when no job has a browser.
    pub(crate) async fn idle(&self) {
        self.until(|state| (state.running.len() == 0).then_some(())).await;
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        let state = self.state();
        Occupancy { slots: state.running.slots, busy: state.running.len(), waiting: state.queue.len() }
    }

    /// For how long the job has waited that waits longest; zero if none waits.
    pub(crate) fn longest_wait(&self) -> Duration {
        let longest = self.state().queue.firsts().map(|waiter| waiter.since.elapsed()).max();
        longest.unwrap_or_default()
    }
}

/// A job that waits; removed from the queue when dropped.
struct Position<'a, B: Candidate> {
    queue: &'a JobQueue<B>,
    /// `None` for a job that waits ahead of the queue.
    ticket: Option<Ticket>,
    granted: oneshot::Receiver<Result<Grant<B>, Refused>>,
}

impl<B: Candidate> Position<'_, B> {
    /// Waits until `latest`; from `page_until` for any browser.
    async fn wait(
        mut self,
        page_until: Instant,
        latest: Instant,
        deadline: Instant,
    ) -> Result<Lease<B>, Refused> {
        let mut granted = timeout_at(page_until.min(latest), &mut self.granted).await;
        if granted.is_err() {
            self.queue.state().dispatch();
            granted = timeout_at(latest, &mut self.granted).await;
        }
        match granted {
            // On a machine without free CPUs, or after it was stopped, this task may run long after the grant.
            Ok(Ok(Ok(grant))) if can_end_by(deadline) => Ok(self.queue.granted(grant)),
            Ok(Ok(Ok(grant))) => {
                let mut state = self.queue.state();
                state.cancel(grant.id);
                Err(state.no_slot_in_time())
            }
            Ok(Ok(Err(refused))) => Err(refused),
            // Not reached: every grant is sent.
            Ok(Err(_)) => Err(Refusal::Draining.into()),
            Err(_) => Err(self.queue.state().no_slot_in_time()),
        }
    }
}

impl<B: Candidate> Drop for Position<'_, B> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        // Grants are sent under this lock. So a job that is not in the queue has its grant in the channel,
        // unless it has received it.
        if self.ticket.is_none_or(|ticket| state.queue.remove(ticket).is_none())
            && let Ok(Ok(grant)) = self.granted.try_recv()
        {
            state.cancel(grant.id);
        }
    }
}

#[cfg(test)]
mod tests;
