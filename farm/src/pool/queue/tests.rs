use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Waker},
};

use platen_shared::id::AccountId;

use super::{super::state::MAX_PAGE_WAIT, *};

/// A browser with a number, which a job may ask for.
#[derive(Debug, Default)]
struct TestBrowser {
    number: usize,
    has_exited: AtomicBool,
    /// It keeps a page for jobs that ask for it.
    keeps_page: AtomicBool,
}

impl PoolMember for TestBrowser {
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
type Leased = Result<Lease<TestBrowser>, Refusal>;
type Waiting = Pin<Box<dyn Future<Output = Leased>>>;

/// A minute in milliseconds.
const MINUTE: u64 = 60_000;
const TIMEOUT: Duration = Duration::from_secs(10);

fn browser(number: usize) -> Arc<TestBrowser> {
    Arc::new(TestBrowser { number, ..TestBrowser::default() })
}

/// A queue with these browsers.
fn queue_of(slots: usize, capacity: usize, browsers: &[Arc<TestBrowser>]) -> TestQueue {
    let queue = JobQueue::new(slots, capacity, TIMEOUT);
    queue.state().browsers.extend_from_slice(browsers);
    queue
}

/// A queue with a browser for each job that may run.
fn queue(slots: usize, capacity: usize) -> TestQueue {
    queue_of(slots, capacity, &(0..2 * slots).map(browser).collect::<Vec<_>>())
}

/// A job that asks for a browser and has this number of milliseconds.
fn job(queue: &TestQueue, account: &str, number: usize, time_left: u64) -> Waiting {
    let (queue, request) = (queue.clone(), (AccountId::from_text(account), number));
    let deadline = Instant::now() + Duration::from_millis(time_left);
    Box::pin(async move { queue.lease(request, deadline).await })
}

/// The browser of a job, which need not wait long.
async fn lease(queue: &TestQueue, account: &str) -> Lease<TestBrowser> {
    job(queue, account, 0, MINUTE).await.unwrap()
}

/// A job that has waited since it was polled once.
fn queued(queue: &TestQueue, account: &str, time_left: u64) -> Waiting {
    let mut waiting = job(queue, account, 0, time_left);
    assert!(is_pending(waiting.as_mut()));
    waiting
}

fn is_pending(future: Pin<&mut (impl Future + ?Sized)>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn occupancy(slots: usize, busy: usize, waiting: usize) -> Occupancy {
    Occupancy { slots, busy, waiting }
}

fn expect_no_slot(leased: Leased) {
    assert_eq!(leased.unwrap_err(), Refusal::NoSlotInTime);
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_a_moment_for_the_browser_that_keeps_its_page_while_half_of_the_slots_are_used() {
    let browsers: Vec<_> = (0..4).map(browser).collect();
    let queue = queue_of(4, 1, &browsers);
    browsers[1].keeps_page.store(true, Ordering::Relaxed);
    let lease = async |name: &str, number: usize| job(&queue, name, number, MINUTE).await.unwrap();
    let (first, waited_for) = (lease("a", 0).await, lease("b", 1).await);
    let before = Instant::now();
    // Half of the slots are used. A job without a page does not wait, not even behind one that does.
    let mut ours = job(&queue, "c", 1, MINUTE);
    assert!(is_pending(ours.as_mut()));
    assert_eq!(lease("d", 2).await.number, 2);
    // With a full queue no job waits.
    assert_ne!(lease("e", 1).await.number, 1);
    drop(waited_for);
    let ours = ours.await.unwrap();
    assert_eq!((ours.number, Instant::now()), (1, before));
    // If the other job takes longer, it gets another browser.
    assert_ne!(lease("c", 1).await.number, 1);
    assert_eq!(before.elapsed(), MAX_PAGE_WAIT);
    // With less than half of the slots in use, CPUs are idle.
    drop(first);
    assert_ne!(lease("c", 1).await.number, 1);
    assert_eq!(before.elapsed(), MAX_PAGE_WAIT);
    assert_eq!(queue.state().demand.available_permits(), 0);
}

#[tokio::test]
async fn a_cancelled_wait_keeps_no_slot() {
    let queue = queue(1, 8);
    let slot = lease(&queue, "a").await;
    // One is dropped while it waits, the other after it was granted the slot and before it was polled.
    let (waits, wins) = (queued(&queue, "b", MINUTE), queued(&queue, "b", MINUTE));
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
    let slot = lease(&queue, "a").await;
    let [first, second, third] = ["a", "a", "b"].map(|account| queued(&queue, account, MINUTE));
    assert_eq!(second.await.unwrap_err(), Refusal::QueueFull);
    drop(slot);
    drop(first.await.unwrap());
    third.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_for_a_time_and_no_longer_than_it_can_still_end_by_its_deadline() {
    for (time_left, waits) in [
        (MINUTE, 10_000),
        (30_000, 10_000),
        (12_000, 10_000),
        // A quarter of its time is kept for its render, two seconds at most.
        (11_000, 9_000),
        (1_000, 750),
        (40, 20),
        (19, 0),
    ] {
        let queue = queue(1, 8);
        let slot = lease(&queue, "a").await;
        let began = Instant::now();
        expect_no_slot(job(&queue, "b", 0, time_left).await);
        assert_eq!(began.elapsed(), Duration::from_millis(waits), "{time_left}");
        assert_eq!(queue.occupancy(), occupancy(1, 1, 0));
        // A slot that becomes free before that is used.
        let mut waiting = job(&queue, "b", 0, time_left);
        if waits > 0 {
            assert!(is_pending(waiting.as_mut()));
            tokio::time::advance(Duration::from_millis(waits)).await;
            drop(slot);
            waiting.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_job_gets_the_browser_that_suits_it_best_and_another_try_is_next() {
    let queue = queue(1, 8);
    let first = job(&queue, "a", 1, MINUTE).await.unwrap();
    assert_eq!(first.number, 1);
    let waiting = queued(&queue, "a", MINUTE);
    let deadline = Instant::now() + Duration::from_millis(MINUTE);
    let mut again = Box::pin(queue.lease_again((AccountId::from_text("a"), 0), deadline));
    assert!(is_pending(again.as_mut()));
    drop(first);
    let again = again.await.unwrap();
    assert_eq!((again.number, queue.occupancy()), (0, occupancy(1, 1, 1)));
    drop(again);
    drop(waiting.await.unwrap());
}

#[tokio::test]
async fn one_account_gets_half_of_the_slots_while_others_wait() {
    let queue = queue(2, 64);
    let (first, _second) = (lease(&queue, "a").await, lease(&queue, "a").await);
    let (mut third, waiting) = (queued(&queue, "a", MINUTE), queued(&queue, "b", MINUTE));
    drop(first);
    let _other = waiting.await.unwrap();
    assert!(is_pending(third.as_mut()));
}

#[tokio::test(start_paused = true)]
async fn a_job_without_time_for_a_render_gets_no_slot() {
    let queue = queue(2, 8);
    for milliseconds in [0, 1, 19] {
        expect_no_slot(job(&queue, "a", 0, milliseconds).await);
    }
    assert_eq!(queue.occupancy(), occupancy(2, 0, 0));
    job(&queue, "a", 0, 20).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    assert!(has_time(deadline, Duration::from_secs(5)) && !has_time(deadline, Duration::from_millis(5_001)));
    let soon = Instant::now() + MIN_RENDER_TIME;
    assert!(can_end_by(soon) && !can_end_by(soon - Duration::from_millis(1)));
}

/// The same as after SIGSTOP and SIGCONT: no timer has run in the meantime, or the task runs long after the grant.
#[tokio::test(start_paused = true)]
async fn a_slot_is_not_given_to_a_job_that_is_late() {
    for is_granted in [false, true] {
        let queue = queue(1, 8);
        let slot = lease(&queue, "a").await;
        let waiting = queued(&queue, "b", 1_000);
        let other = queued(&queue, "c", MINUTE);
        let slot = (!is_granted).then_some(slot);
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(slot);
        assert_eq!(queue.occupancy().busy, 1);
        expect_no_slot(waiting.await);
        drop(other.await.unwrap());
        assert_eq!(queue.occupancy(), occupancy(1, 0, 0));
    }
}

#[tokio::test]
async fn a_long_job_lets_another_browser_start_for_a_job_that_waits() {
    let queue = queue_of(1, 8, &[browser(0)]);
    let permits = || queue.state().demand.available_permits();
    let first = lease(&queue, "a").await;
    first.mark_long();
    assert_eq!(permits(), 0);
    let (waiting, _other) = (queued(&queue, "b", MINUTE), queued(&queue, "b", MINUTE));
    assert_eq!(permits(), 1);
    queue.state().add(&browser(1));
    let second = waiting.await.unwrap();
    second.mark_long();
    // No more than twice the slots.
    assert_eq!((permits(), queue.occupancy()), (1, occupancy(1, 2, 1)));
}

#[tokio::test]
async fn a_browser_that_ended_because_it_was_idle_starts_again_for_a_job_that_waits() {
    let browsers = [browser(0), browser(1)];
    let queue = queue_of(2, 8, &browsers);
    queue.state().end_until_demand(1, Some(&browsers[1]));
    let permits = || queue.state().demand.available_permits();
    let first = lease(&queue, "a").await;
    assert_eq!((permits(), queue.ready()), (0, 1));
    let (waiting, other) = (queued(&queue, "b", MINUTE), queued(&queue, "b", MINUTE));
    // No more than the slots.
    assert_eq!(permits(), 1);
    queue.state().add(&browsers[1]);
    drop((first, other, waiting.await.unwrap()));
    // Jobs are refused only if no browser that is wanted starts.
    queue.state().browsers.clear();
    queue.state().start_failed(0, LaunchError::Closed);
    assert!(!queue.state().has_failed());
    queue.state().end_until_demand(1, None);
    assert!(queue.state().has_failed());
}

#[tokio::test]
async fn a_job_waits_for_a_browser_unless_none_can_be_started() {
    let queue = queue_of(1, 8, &[]);
    let waiting = queued(&queue, "a", MINUTE);
    let only = browser(0);
    queue.state().add(&only);
    drop(waiting.await.unwrap());
    only.has_exited.store(true, Ordering::Relaxed);
    let waiting = queued(&queue, "a", MINUTE);
    queue.state().start_failed(0, LaunchError::Closed);
    for refused in [waiting, job(&queue, "a", 0, MINUTE)] {
        assert_eq!(refused.await.unwrap_err(), Refusal::NoBrowser);
    }
    queue.state().started(0, Some(&only), &browser(1));
    assert_eq!(queue.ready(), 1);
    drop(lease(&queue, "a").await);
}
