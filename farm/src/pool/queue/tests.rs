mod browsers;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Waker},
};

use platen_shared::id::AccountId;

use super::{super::state::MAX_PAGE_WAIT, *};

/// A browser with a number, which a job may ask for.
#[derive(Debug)]
struct TestBrowser {
    number: usize,
    has_exited: AtomicBool,
    /// It keeps a page for jobs that ask for it.
    keeps_page: AtomicBool,
}

impl Candidate for TestBrowser {
    type Request = (AccountId, usize);
    type Rank = bool;

    fn account((account, _): &(AccountId, usize)) -> &AccountId {
        account
    }

    fn is_usable(&self) -> bool {
        !self.has_exited.load(Ordering::Relaxed)
    }

    fn keeps_page(&self, (_, number): &(AccountId, usize)) -> bool {
        self.number == *number && self.keeps_page.load(Ordering::Relaxed)
    }

    fn rank(&self, (_, number): &(AccountId, usize)) -> bool {
        self.number != *number
    }

    fn begin_job(&self) {}
}

type TestQueue = JobQueue<TestBrowser>;

/// With a browser for each job that may run.
fn queue(slots: usize, capacity: usize) -> TestQueue {
    let queue = JobQueue::new(slots, capacity);
    (0..2 * slots).for_each(|number| queue.state().add(&browser(number)));
    queue
}

fn browser(number: usize) -> Arc<TestBrowser> {
    Arc::new(TestBrowser { number, has_exited: AtomicBool::default(), keeps_page: AtomicBool::default() })
}

fn account(name: &str) -> AccountId {
    AccountId::from_text(name)
}

const MINUTE: Duration = Duration::from_mins(1);
const NO_SLOT_IN_TIME: Refusal = Refusal::NoSlotInTime { retry_after: 1 };

fn soon() -> Instant {
    Instant::now() + MINUTE
}

fn occupancy(slots: usize, busy: usize, waiting: usize) -> Occupancy {
    Occupancy { slots, busy, waiting }
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_a_moment_for_the_browser_that_keeps_its_page_while_half_of_the_slots_are_used() {
    let queue = JobQueue::new(4, 1);
    let browsers: Vec<_> = (0..4).map(browser).collect();
    for browser in &browsers {
        queue.state().add(browser);
    }
    browsers[1].keeps_page.store(true, Ordering::Relaxed);
    let number = |lease: &Lease<TestBrowser>| lease.number;
    let lease = |name: &str, number: usize| queue.lease((account(name), number), soon());
    let (first, waited_for) = (lease("a", 0).await.unwrap(), lease("b", 1).await.unwrap());
    let before = Instant::now();
    // Half of the slots are used. A job without a page does not wait, not even behind one that does.
    let mut ours = Box::pin(lease("c", 1));
    assert!(is_pending(&mut ours));
    assert_eq!(number(&lease("d", 2).await.unwrap()), 2);
    // With a full queue no job waits.
    assert_ne!(number(&lease("e", 1).await.unwrap()), 1);
    drop(waited_for);
    let ours = ours.await.unwrap();
    assert_eq!((number(&ours), Instant::now()), (1, before));
    // If the other job takes longer, it gets another browser.
    assert_ne!(number(&lease("c", 1).await.unwrap()), 1);
    assert_eq!(before.elapsed(), MAX_PAGE_WAIT);
    // With less than half of the slots in use, CPUs are idle.
    drop(first);
    assert_ne!(number(&lease("c", 1).await.unwrap()), 1);
    assert_eq!(before.elapsed(), MAX_PAGE_WAIT);
    assert_eq!(queue.state().demand.available_permits(), 0);
}

#[tokio::test]
async fn a_cancelled_wait_keeps_no_slot() {
    let queue = queue(1, 8);
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let owner = account("b");
    // One is dropped while it waits, the other after it was granted the slot and before it was polled.
    let waits = queued(&queue, &owner, MINUTE);
    let wins = queued(&queue, &owner, MINUTE);
    drop(waits);
    assert_eq!(queue.occupancy(), occupancy(1, 1, 1));
    drop(slot);
    assert_eq!(queue.occupancy(), occupancy(1, 1, 0));
    drop(wins);
    assert_eq!(queue.occupancy(), occupancy(1, 0, 0));
}

#[tokio::test]
async fn one_account_cannot_fill_the_queue_for_another() {
    let queue = queue(1, 2);
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let (greedy, other) = (account("a"), account("b"));
    let first = queued(&queue, &greedy, MINUTE);
    let second = queued(&queue, &greedy, MINUTE);
    let third = queued(&queue, &other, MINUTE);
    assert!(matches!(second.await.unwrap_err().refusal, Refusal::QueueFull { .. }));
    drop(slot);
    drop(first.await.unwrap());
    third.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_get_a_slot_in_time_is_rejected_at_once() {
    let queue = queue(1, 8);
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let late = queue.lease((account("a"), 0), Instant::now() + Duration::from_millis(5)).await;
    assert_eq!(late.unwrap_err(), Refusal::NoSlotInTime { retry_after: 1 }.into());
    // A job takes 20 s here, so a deadline in 10 s cannot be met.
    tokio::time::advance(Duration::from_secs(20)).await;
    drop(slot);
    let _slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let before = Instant::now();
    let rejected = queue.lease((account("a"), 0), before + Duration::from_secs(10)).await;
    let refusal = Refusal::NoSlotInTime { retry_after: 20 };
    assert_eq!(rejected.unwrap_err(), Refused { refusal, not_before: Some(MAX_NOT_BEFORE) });
    assert_eq!(Instant::now(), before);
}

#[tokio::test]
async fn a_job_gets_the_browser_that_suits_it_best_and_another_try_is_next() {
    let queue = queue(1, 8);
    let owner = account("a");
    let lease = queue.lease((owner.clone(), 1), soon()).await.unwrap();
    assert_eq!(lease.number, 1);
    let waiting = queued(&queue, &owner, MINUTE);
    let mut again = Box::pin(queue.lease_again((owner.clone(), 0), soon()));
    assert!(is_pending(&mut again));
    drop(lease);
    let again = again.await.unwrap();
    assert_eq!((again.number, queue.occupancy()), (0, occupancy(1, 1, 1)));
    drop(again);
    drop(waiting.await.unwrap());
}

#[tokio::test]
async fn one_account_gets_half_of_the_slots_while_others_wait() {
    let queue = queue(2, 64);
    let (greedy, other) = (account("a"), account("b"));
    let first = queue.lease((greedy.clone(), 0), soon()).await.unwrap();
    let _second = queue.lease((greedy.clone(), 0), soon()).await.unwrap();
    let mut third = queued(&queue, &greedy, MINUTE);
    let waiting = queued(&queue, &other, MINUTE);
    drop(first);
    let _other = waiting.await.unwrap();
    assert!(is_pending(&mut third));
}

/// A job of the account that has waited since it was polled once.
fn queued<'a>(
    queue: &'a TestQueue,
    account: &'a AccountId,
    time_left: Duration,
) -> std::pin::Pin<Box<impl Future<Output = Result<Lease<TestBrowser>, Refused>> + 'a>> {
    let mut waiting = Box::pin(queue.lease((account.clone(), 0), Instant::now() + time_left));
    assert!(is_pending(&mut waiting));
    waiting
}

fn is_pending<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test(start_paused = true)]
async fn a_job_without_time_for_a_render_gets_no_slot() {
    let queue = queue(2, 8);
    for time_left in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(19)] {
        let refused = queue.lease((account("a"), 0), Instant::now() + time_left).await.unwrap_err();
        assert_eq!(refused, NO_SLOT_IN_TIME.into(), "{time_left:?}");
    }
    assert_eq!(queue.occupancy(), occupancy(2, 0, 0));
    queue.lease((account("a"), 0), Instant::now() + MIN_RENDER_TIME).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_is_rejected_while_it_could_still_be_rendered_in_time() {
    let queue = queue(1, 8);
    let _slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let before = Instant::now();
    let refused = queue.lease((account("b"), 0), before + Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(refused, NO_SLOT_IN_TIME.into());
    assert!(before.elapsed() + MIN_RENDER_TIME <= Duration::from_secs(2), "{:?}", before.elapsed());
}

/// As after SIGSTOP and SIGCONT: no timer has run in the meantime.
#[tokio::test(start_paused = true)]
async fn a_free_slot_is_not_given_to_a_job_that_is_late() {
    let queue = queue(1, 8);
    let (late, in_time) = (account("b"), account("c"));
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let waiting = queued(&queue, &late, Duration::from_secs(30));
    let other = queued(&queue, &in_time, Duration::from_mins(5));
    tokio::time::advance(Duration::from_secs(40)).await;
    drop(slot);
    assert_eq!(queue.occupancy(), occupancy(1, 1, 0));
    assert!(matches!(waiting.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    drop(other.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_received_too_late_is_given_to_the_next_job() {
    let queue = queue(1, 8);
    let (first, second) = (account("b"), account("c"));
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let waiting = queued(&queue, &first, Duration::from_secs(30));
    let other = queued(&queue, &second, Duration::from_mins(5));
    drop(slot);
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(matches!(waiting.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    drop(other.await.unwrap());
    assert_eq!(queue.occupancy(), occupancy(1, 0, 0));
    // The 40 s of the slot that was not used are not the time of a job.
    assert_eq!(queue.state().times.average_seconds, Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_is_rejected_when_jobs_become_too_slow_for_it() {
    let queue = queue(1, 8);
    let owner = account("b");
    let mut slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let mut waiting: Vec<_> = (0..8).map(|_| queued(&queue, &owner, Duration::from_secs(30))).collect();
    // The first job takes 12 s. At half of that, the fourth of the queued jobs starts after 30 s.
    tokio::time::advance(Duration::from_secs(12)).await;
    drop(slot);
    assert_eq!(queue.occupancy(), occupancy(1, 1, 3));
    for rejected in waiting.split_off(4) {
        assert!(matches!(rejected.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    }
    assert_eq!(Instant::now().elapsed(), Duration::ZERO);
    slot = waiting.remove(0).await.unwrap();
    drop(slot);
}

#[tokio::test(start_paused = true)]
async fn an_account_may_come_again_before_its_queue_is_empty() {
    const QUEUE: usize = 64;
    let job_time = Duration::from_millis(100);
    let queue = queue(2, QUEUE);
    let owner = account("a");
    let warm_up = queue.lease((owner.clone(), 0), soon()).await.unwrap();
    tokio::time::advance(job_time).await;
    drop(warm_up);
    let mut running: Vec<Lease<TestBrowser>> = Vec::new();
    for _ in 0..2 {
        running.push(queue.lease((owner.clone(), 0), soon()).await.unwrap());
    }
    let mut waiting: std::collections::VecDeque<_> =
        (0..QUEUE).map(|_| queued(&queue, &owner, Duration::from_mins(1))).collect();
    let refused = queue.lease((owner.clone(), 0), soon()).await.unwrap_err();
    assert_eq!(refused.refusal, Refusal::QueueFull { retry_after: 4 });
    let not_before = refused.not_before.unwrap();
    let end = Instant::now() + not_before;
    while Instant::now() + job_time <= end {
        tokio::time::advance(job_time).await;
        for slot in std::mem::take(&mut running) {
            drop(slot);
            running.push(waiting.pop_front().unwrap().await.unwrap());
        }
    }
    let left = queue.occupancy().waiting;
    assert!((QUEUE / 2..QUEUE).contains(&left), "{left} jobs wait after {not_before:?}");
    // An account with no job in a queue that others fill may come again at once.
    let others: Vec<AccountId> = (0..QUEUE).map(|number| account(&number.to_string())).collect();
    let _full: Vec<_> = others.iter().skip(left).map(|other| queued(&queue, other, job_time * 600)).collect();
    let _one_each: Vec<_> =
        others.iter().take(left - 1).map(|other| queued(&queue, other, job_time * 600)).collect();
    let refused = queue.lease((account("new"), 0), soon()).await.unwrap_err();
    assert_eq!(refused.not_before, Some(MIN_RENDER_TIME));
}

/// A farm whose last jobs took this time each, with its only slot taken.
async fn busy_after_jobs_of(job_time: Duration) -> (TestQueue, Lease<TestBrowser>) {
    let queue = queue(1, 8);
    for _ in 0..40 {
        let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
        tokio::time::advance(job_time).await;
        drop(slot);
    }
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    (queue, slot)
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_needs_as_much_time_as_recent_jobs_did() {
    for (waits_ms, starts) in [(9_499, true), (9_501, false)] {
        let (queue, slot) = busy_after_jobs_of(Duration::from_millis(500)).await;
        let (first, next) = (account("b"), account("c"));
        let waiting = queued(&queue, &first, Duration::from_secs(10));
        let other = queued(&queue, &next, Duration::from_secs(20));
        tokio::time::advance(Duration::from_millis(waits_ms)).await;
        drop(slot);
        assert_eq!(waiting.await.is_ok(), starts);
        drop(other.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn long_jobs_do_not_prevent_that_a_job_waits_for_most_of_its_time() {
    let (queue, slot) = busy_after_jobs_of(Duration::from_millis(300)).await;
    let owner = account("b");
    // It waits for three quarters of its time at most, although recent jobs needed more than the last quarter.
    let waiting = queued(&queue, &owner, Duration::from_millis(800));
    tokio::time::advance(Duration::from_millis(590)).await;
    drop(slot);
    drop(waiting.await.unwrap());
    // A job that finds a free slot starts with less time.
    queue.lease((owner.clone(), 0), Instant::now() + MIN_RENDER_TIME).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_only_with_the_time_that_it_needs() {
    let deadline = Instant::now() + Duration::from_secs(5);
    assert!(has_time(deadline, Duration::from_secs(5)) && !has_time(deadline, Duration::from_millis(5_001)));
    let soon = Instant::now() + MIN_RENDER_TIME;
    assert!(can_end_by(soon) && !can_end_by(soon - Duration::from_millis(1)));
}
