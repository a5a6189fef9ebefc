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
    running::PoolMember,
    state::{Grant, MIN_RENDER_TIME, State, Waiter, wait_end},
};
use crate::{error::LaunchError, metrics::Occupancy};

/// Whether a job that starts now can end by its deadline.
pub(crate) fn can_end_by(deadline: Instant) -> bool {
    has_time(deadline, Duration::ZERO)
}

/// Whether a job that starts now and takes at least this time can end by its deadline.
pub(crate) fn has_time(deadline: Instant, needed: Duration) -> bool {
    deadline.saturating_duration_since(Instant::now()) >= needed.max(MIN_RENDER_TIME)
}

#[derive(Debug)]
pub(crate) struct JobQueue<B: PoolMember> {
    state: Arc<Mutex<State<B>>>,
    /// The longest time for which a job waits.
    timeout: Duration,
}

impl<B: PoolMember> Clone for JobQueue<B> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), timeout: self.timeout }
    }
}

/// A browser that one job has until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease<B: PoolMember> {
    queue: JobQueue<B>,
    pooled: Arc<B>,
    id: u64,
}

impl<B: PoolMember> Lease<B> {
    /// Marks the job as long, so that another job may run in addition.
    pub(crate) fn mark_long(&self) {
        let mut state = self.queue.state();
        state.running.mark_long(self.id);
        state.dispatch();
    }
}

impl<B: PoolMember> Deref for Lease<B> {
    type Target = Arc<B>;

    fn deref(&self) -> &Arc<B> {
        &self.pooled
    }
}

impl<B: PoolMember> Drop for Lease<B> {
    fn drop(&mut self) {
        self.queue.state().end(self.id);
    }
}

impl<B: PoolMember> JobQueue<B> {
    pub(super) fn new(slots: usize, queue: usize, timeout: Duration) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(slots, queue))), timeout }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock()
    }

    /// Waits for a browser, at most for the queue's timeout and as long as the job can still end by `deadline`. Fails with
    /// [`Refusal::Draining`], [`Refusal::NoBrowser`], [`Refusal::QueueFull`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn lease(&self, request: B::Request, deadline: Instant) -> Result<Lease<B>, Refusal> {
        let (position, page_until, until) = {
            let mut state = self.state();
            if state.draining {
                return Err(Refusal::Draining);
            }
            if state.has_failed() {
                return Err(Refusal::NoBrowser);
            }
            if !can_end_by(deadline) {
                return Err(Refusal::NoSlotInTime);
            }
            let waits = !state.queue.is_full() && state.running.have_page_of(&request, &state.browsers);
            if !waits && let Some(grant) = state.start_at_once(&request) {
                return Ok(self.granted(grant));
            }
            let account = B::account(&request).clone();
            let (waiter, granted) = Waiter::new(request, wait_end(deadline, self.timeout));
            let (page_until, until) = (waiter.page_until, waiter.until);
            let Ok((ticket, evicted)) = state.queue.join(&account, waiter) else {
                return Err(Refusal::QueueFull);
            };
            if let Some((_, evicted)) = evicted {
                evicted.reject(Refusal::QueueFull);
            }
            // Another browser may start for it.
            state.dispatch();
            (Position { queue: self, ticket: Some(ticket), granted }, page_until, until)
        };
        position.wait(page_until, until).await
    }

    /// Waits for a browser for a job that has been accepted before, ahead of the queue. Fails with [`Refusal::NoBrowser`] or [`Refusal::NoSlotInTime`].
    pub(crate) async fn lease_again(
        &self,
        request: B::Request,
        deadline: Instant,
    ) -> Result<Lease<B>, Refusal> {
        let until = deadline - MIN_RENDER_TIME;
        let (waiter, granted) = Waiter::new(request, until);
        self.state().retry(waiter);
        Position { queue: self, ticket: None, granted }.wait(until, until).await
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

    /// The time for which the job has waited that waits longest; zero if none waits.
    pub(crate) fn longest_wait(&self) -> Duration {
        let longest = self.state().queue.firsts().map(|waiter| waiter.since.elapsed()).max();
        longest.unwrap_or_default()
    }
}

/// A job that waits; removed from the queue when dropped.
struct Position<'a, B: PoolMember> {
    queue: &'a JobQueue<B>,
    /// `None` for a job that waits ahead of the queue.
    ticket: Option<Ticket>,
    granted: oneshot::Receiver<Result<Grant<B>, Refusal>>,
}

impl<B: PoolMember> Position<'_, B> {
    /// Waits until `until`; from `page_until` for any browser.
    async fn wait(mut self, page_until: Instant, until: Instant) -> Result<Lease<B>, Refusal> {
        let mut granted = timeout_at(page_until, &mut self.granted).await;
        if granted.is_err() {
            self.queue.state().dispatch();
            granted = timeout_at(until, &mut self.granted).await;
        }
        match granted {
            Ok(Ok(Ok(grant))) if Instant::now() <= until => Ok(self.queue.granted(grant)),
            // On a machine without free CPUs, or after it was stopped, this task may run long after the grant.
            Ok(Ok(Ok(grant))) => {
                self.queue.state().end(grant.id);
                Err(Refusal::NoSlotInTime)
            }
            Ok(Ok(Err(refusal))) => Err(refusal),
            // Not reached: every grant is sent.
            Ok(Err(_)) => Err(Refusal::Draining),
            Err(_) => Err(Refusal::NoSlotInTime),
        }
    }
}

impl<B: PoolMember> Drop for Position<'_, B> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        // Grants are sent under this lock. So a job that is not in the queue has its grant in the channel,
        // unless it has received it.
        if self.ticket.is_none_or(|ticket| state.queue.remove(ticket).is_none())
            && let Ok(Ok(grant)) = self.granted.try_recv()
        {
            state.end(grant.id);
        }
    }
}

#[cfg(test)]
mod tests;
