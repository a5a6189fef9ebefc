//! The jobs of a pool: which browser each has, and which ones wait.
//!
//! Invariant: a browser has one job at a time. At most `slots` jobs run, and one more for each long job, up to twice as
//! many. While other accounts wait, an account gets at most half of the slots. A job that cannot end by its deadline,
//! or had to wait and is not likely to, gets no browser, and is rejected as soon as that is certain. A job waits for the browser
//! that keeps a page for it no longer than [`MAX_PAGE_WAIT`] while another browser is free.

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

use super::running::{Candidate, JobTimes, Running};
use crate::error::{LaunchError, Refused};

/// No job starts with less time until its deadline. A small page of an account that has a warm page takes about
/// this time on an idle machine.
pub(super) const MIN_RENDER_TIME: Duration = Duration::from_millis(20);
/// A job that had to wait starts only if it has the time left that recent jobs needed, up to this limit.
const MAX_REQUIRED_TIME: Duration = Duration::from_secs(2);
/// It requires no more than this part of the time that it had when it arrived, so that a job with a short deadline
/// can wait too.
const REQUIRED_DIVISOR: u32 = 4;
/// For how long a job waits for the browser that keeps a page of its account while another account's job has it: most small
/// jobs end in this time. In a simulation of accounts by Zipf's law, half of the time met half of the further pages.
pub(super) const MAX_PAGE_WAIT: Duration = Duration::from_millis(200);
/// Maximum of the time for which further jobs of an account are likely to be refused, as the response says; the minimum is
/// [`MIN_RENDER_TIME`]. It ends when a quarter of the account's queued jobs have started, so that the queue does not run
/// empty meanwhile.
pub(super) const MAX_NOT_BEFORE: Duration = Duration::from_secs(1);
const DRAINED_DIVISOR: usize = 4;
/// How often the queue is searched for jobs that cannot start in time any more.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum of `retry-after`; the load changes faster than that.
const MAX_RETRY_SECONDS: f64 = 30.0;

#[derive(Debug)]
pub(super) struct State<B: Candidate> {
    pub(super) browsers: Vec<Arc<B>>,
    /// Of those browsers that are wanted whose latest start has failed, by their index.
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
    /// When the queue was last searched for jobs that cannot start in time.
    swept: Instant,
    pub(super) times: JobTimes,
}

#[derive(Debug)]
pub(super) struct Grant<B> {
    pub(super) id: u64,
    pub(super) browser: Arc<B>,
}

#[derive(Debug)]
pub(super) struct Waiter<B: Candidate> {
    request: B::Request,
    pub(super) since: Instant,
    pub(super) deadline: Instant,
    /// Limit of the time that it requires when it starts.
    max_required: Duration,
    /// Until when it may wait for the browser that keeps a page for it.
    pub(super) page_until: Instant,
    grant: oneshot::Sender<Result<Grant<B>, Refused>>,
}

impl<B: Candidate> Waiter<B> {
    pub(super) fn new(
        request: B::Request,
        deadline: Instant,
        max_required: Duration,
    ) -> (Self, oneshot::Receiver<Result<Grant<B>, Refused>>) {
        let (grant, granted) = oneshot::channel();
        let since = Instant::now();
        let page_until = since + MAX_PAGE_WAIT.min(max_required);
        (Self { request, since, deadline, max_required, page_until, grant }, granted)
    }

    pub(super) fn reject(self, refused: Refused) {
        // Fails only if the caller has disconnected.
        let _ = self.grant.send(Err(refused));
    }
}

/// Limit of the time that a job requires which arrives with this time left.
pub(super) fn max_required(time_left: Duration) -> Duration {
    (time_left / REQUIRED_DIVISOR).clamp(MIN_RENDER_TIME, MAX_REQUIRED_TIME)
}

impl<B: Candidate> State<B> {
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
            swept: Instant::now(),
            times: JobTimes::default(),
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
        if let Some(time) = self.running.end(id) {
            self.times.record(time);
        }
        self.changed();
        self.reject_late();
    }

    /// Takes the browser from a job that has not started.
    pub(super) fn cancel(&mut self, id: u64) {
        self.running.end(id);
        self.changed();
    }

    pub(super) fn retry(&mut self, waiter: Waiter<B>) {
        self.retries.push_back(waiter);
        self.dispatch();
    }

    /// Gives free browsers to waiting jobs that may run and can end by their deadlines. Asks for another browser for a
    /// job that still waits, if a slot has none or a long job allows one more.
    pub(super) fn dispatch(&mut self) {
        self.retries.retain(|waiter| !waiter.grant.is_closed());
        if self.has_failed() {
            let queued = std::iter::from_fn(|| self.queue.pop(|_, _| true)).map(|(_, waiter)| waiter);
            self.retries.drain(..).chain(queued).for_each(|waiter| waiter.reject(Refusal::NoBrowser.into()));
            return;
        }
        while self.free().next().is_some()
            && let Some(waiter) = self.next()
        {
            if waiter.deadline.saturating_duration_since(Instant::now()) < self.required(waiter.max_required)
            {
                waiter.reject(self.no_slot_in_time());
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

    /// The time that a job requires which had to wait: what recent jobs needed, within bounds.
    pub(super) fn required(&self, max: Duration) -> Duration {
        self.times.likely_max.clamp(MIN_RENDER_TIME, max)
    }

    /// The expected time until this number of jobs has ended, by the average of recent jobs.
    pub(super) fn expected_time(&self, jobs: usize) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "an estimate of small numbers")]
        let rounds = jobs as f64 / self.running.slots as f64;
        Duration::try_from_secs_f64(self.times.average_seconds.unwrap_or(0.0) * rounds)
            .unwrap_or(Duration::MAX)
    }

    pub(super) fn no_slot_in_time(&self) -> Refused {
        Refusal::NoSlotInTime { retry_after: self.retry_after() }.into()
    }

    /// The refusal of a job of this account, until a part of its queued jobs have started.
    pub(super) fn queue_full(&self, account: &AccountId) -> Refused {
        let drained = self.queue.waiting_of(account).div_ceil(DRAINED_DIVISOR);
        let time = self.expected_time(self.queue.until_started(drained));
        let refusal = Refusal::QueueFull { retry_after: self.retry_after() };
        Refused { refusal, not_before: Some(not_before(time)) }
    }

    /// Rejects queued jobs that would not start in time even if the jobs before them took half of the average. Otherwise they
    /// would learn only near their deadlines that jobs have become slower.
    fn reject_late(&mut self) {
        if self.swept.elapsed() < SWEEP_INTERVAL {
            return;
        }
        self.swept = Instant::now();
        let half = self.expected_time(1) / 2;
        let likely_max = self.times.likely_max;
        let swept = self.swept;
        let is_late = |ahead: usize, waiter: &Waiter<B>| {
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
pub(super) fn not_before(expected: Duration) -> Duration {
    expected.clamp(MIN_RENDER_TIME, MAX_NOT_BEFORE)
}
