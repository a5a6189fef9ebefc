//! The jobs of a pool: which browser each has, and which ones wait.
//!
//! Invariant: a browser has one job at a time. At most `slots` jobs run, and one more for each long job, up to twice as
//! many. While other accounts wait, an account gets at most half of the slots. A job that has waited for as long as it may
//! gets no browser. A job waits for the browser that keeps a page for it no longer than [`MAX_PAGE_WAIT`] while another
//! browser is free.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use platen_program::FairQueue;
use platen_shared::{id::AccountId, refusal::Refusal};
use tokio::{
    sync::{Semaphore, oneshot, watch},
    time::Instant,
};

use super::running::{PoolMember, Running};
use crate::error::LaunchError;

/// No job starts with less time until its deadline. A small page of an account that has a warm page takes about
/// this time on an idle machine.
pub(super) const MIN_RENDER_TIME: Duration = Duration::from_millis(20);
/// A job that waits keeps a quarter of the time that it had when it arrived for its render, up to this limit: a render that
/// does not end by the deadline counts, and a refusal does not.
const MAX_KEPT_TIME: Duration = Duration::from_secs(2);
/// The time for which a job waits for the browser that keeps a page of its account while another account's job has it: most small
/// jobs end in this time. In a simulation of accounts by Zipf's law, half of the time met half of the further pages.
pub(super) const MAX_PAGE_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct State<B: PoolMember> {
    pub(super) browsers: Vec<Arc<B>>,
    /// The failures of browsers that are wanted and whose latest start has failed, by their index.
    pub(super) failures: BTreeMap<usize, LaunchError>,
    /// Notified when a job ends, and when browsers or failures change.
    pub(super) changes: watch::Sender<()>,
    /// Browsers that run or are being started.
    wanted: usize,
    /// A permit for each browser that is to start because a job waits.
    pub(super) demand: Arc<Semaphore>,
    pub(super) running: Running<B>,
    /// Jobs that need another browser. They are next.
    retries: VecDeque<Waiter<B>>,
    pub(super) queue: FairQueue<AccountId, Waiter<B>>,
    pub(super) draining: bool,
}

#[derive(Debug)]
pub(super) struct Grant<B> {
    pub(super) id: u64,
    pub(super) browser: Arc<B>,
}

#[derive(Debug)]
pub(super) struct Waiter<B: PoolMember> {
    request: B::Request,
    pub(super) since: Instant,
    /// The instant until which it may wait for the browser that keeps a page for it.
    pub(super) page_until: Instant,
    /// The instant until which it may wait.
    pub(super) until: Instant,
    grant: oneshot::Sender<Result<Grant<B>, Refusal>>,
}

impl<B: PoolMember> Waiter<B> {
    pub(super) fn new(
        request: B::Request,
        until: Instant,
    ) -> (Self, oneshot::Receiver<Result<Grant<B>, Refusal>>) {
        let (grant, granted) = oneshot::channel();
        let since = Instant::now();
        let page_until = since + MAX_PAGE_WAIT.min(until.saturating_duration_since(since) / 2);
        (Self { request, since, page_until, until, grant }, granted)
    }

    pub(super) fn reject(self, refusal: Refusal) {
        // Fails only if the caller has disconnected.
        let _ = self.grant.send(Err(refusal));
    }
}

/// The instant until which a job that arrives now may wait: for this time, and no longer than it can still end by its deadline.
pub(super) fn wait_end(deadline: Instant, timeout: Duration) -> Instant {
    let now = Instant::now();
    let time_left = deadline.saturating_duration_since(now);
    let kept = (time_left / 4).clamp(MIN_RENDER_TIME, MAX_KEPT_TIME);
    now + time_left.saturating_sub(kept).min(timeout)
}

impl<B: PoolMember> State<B> {
    pub(super) fn new(slots: usize, queue: usize) -> Self {
        Self {
            browsers: Vec::new(),
            failures: BTreeMap::new(),
            changes: watch::channel(()).0,
            wanted: slots,
            demand: Arc::new(Semaphore::new(0)),
            running: Running::new(slots),
            retries: VecDeque::new(),
            queue: FairQueue::new(queue),
            draining: false,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failures.len() == self.wanted && !self.browsers.iter().any(|browser| browser.is_usable())
    }

    pub(super) fn started(&mut self, index: usize, old: Option<&Arc<B>>, new: &Arc<B>) {
        self.failures.remove(&index);
        if let Some(old) = old {
            self.remove(old);
        }
        self.add(new);
    }

    pub(super) fn start_failed(&mut self, index: usize, error: LaunchError) {
        self.failures.insert(index, error);
        self.changed();
    }

    pub(super) fn add(&mut self, browser: &Arc<B>) {
        self.browsers.push(Arc::clone(browser));
        self.changed();
    }

    pub(super) fn remove(&mut self, browser: &Arc<B>) {
        self.browsers.retain(|known| !Arc::ptr_eq(known, browser));
        self.changed();
    }

    /// A browser that ran or was being started does not any more, until jobs ask for it.
    pub(super) fn end_until_demand(&mut self, index: usize, browser: Option<&Arc<B>>) {
        self.wanted -= 1;
        self.failures.remove(&index);
        self.browsers.retain(|known| browser.is_none_or(|ended| !Arc::ptr_eq(known, ended)));
        self.changed();
    }

    fn changed(&mut self) {
        self.dispatch();
        self.changes.send_replace(());
    }

    fn free(&self) -> impl Iterator<Item = &Arc<B>> {
        self.browsers.iter().filter(|browser| browser.is_usable() && !self.running.has(browser))
    }

    /// Starts a job that has just arrived, if it may run: those that wait may not, wait for a page of theirs, or no browser is
    /// free.
    pub(super) fn start_at_once(&mut self, request: &B::Request) -> Option<Grant<B>> {
        let account = B::account(request);
        let others_wait = self.queue.any(|other| other != account);
        let is_next = self.retries.is_empty() && self.running.may_run(account, others_wait);
        if is_next { self.start(request) } else { None }
    }

    /// Gives a job the free browser that suits it best.
    fn start(&mut self, request: &B::Request) -> Option<Grant<B>> {
        let browser = Arc::clone(self.free().min_by_key(|browser| browser.rank(request))?);
        browser.begin_job();
        let id = self.running.start(B::account(request).clone(), Arc::clone(&browser));
        Some(Grant { id, browser })
    }

    pub(super) fn end(&mut self, id: u64) {
        self.running.end(id);
        self.changed();
    }

    pub(super) fn retry(&mut self, waiter: Waiter<B>) {
        self.retries.push_back(waiter);
        self.dispatch();
    }

    /// Gives free browsers to waiting jobs that may run and have not waited for too long. Asks for another browser for a
    /// job that still waits, if a slot has none or a long job allows one more.
    pub(super) fn dispatch(&mut self) {
        self.retries.retain(|waiter| !waiter.grant.is_closed());
        if self.has_failed() {
            let queued = std::iter::from_fn(|| self.queue.pop(|_, _| true)).map(|(_, waiter)| waiter);
            self.retries.drain(..).chain(queued).for_each(|waiter| waiter.reject(Refusal::NoBrowser));
            return;
        }
        while self.free().next().is_some()
            && let Some(waiter) = self.next()
        {
            if Instant::now() > waiter.until {
                waiter.reject(Refusal::NoSlotInTime);
                continue;
            }
            if let Some(grant) = self.start(&waiter.request)
                && let Err(Ok(unused)) = waiter.grant.send(Ok(grant))
            {
                self.running.end(unused.id);
            }
        }
        let others_wait = self.queue.flows() > 1;
        let waits = !self.retries.is_empty() || self.queue.any(|it| self.running.may_run(it, others_wait));
        if waits
            && self.free().next().is_none()
            && self.wanted < self.running.slots + self.running.max_extra()
        {
            self.wanted += 1;
            self.demand.add_permits(1);
        }
    }

    fn next(&mut self) -> Option<Waiter<B>> {
        if !self.running.may_any_run() {
            return None;
        }
        let others_wait = self.queue.flows() > 1;
        let Self { retries, queue, running, browsers, .. } = self;
        let now = Instant::now();
        let waits =
            |waiter: &Waiter<B>| now < waiter.page_until && running.have_page_of(&waiter.request, browsers);
        retries.pop_front().or_else(|| {
            let queued = queue.pop(|account, waiter| running.may_run(account, others_wait) && !waits(waiter));
            queued.map(|(_, waiter)| waiter)
        })
    }
}
