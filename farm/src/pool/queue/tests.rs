use std::{
    future::Future as _,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Waker},
};

use platen_shared::id::AccountId;

use super::*;

/// A browser with a number, which a job may ask for.
#[derive(Debug)]
pub(super) struct TestBrowser {
    number: usize,
    has_exited: AtomicBool,
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

    fn rank(&self, (_, number): &(AccountId, usize)) -> bool {
        self.number != *number
    }

    fn begin_job(&self) {}
}

pub(super) type TestQueue = JobQueue<TestBrowser>;

/// With a browser for each job that may run.
pub(super) fn queue(slots: usize, capacity: usize) -> TestQueue {
    let queue = JobQueue::new(slots, capacity);
    (0..2 * slots).for_each(|number| queue.state().add(&browser(number)));
    queue
}

pub(super) fn browser(number: usize) -> Arc<TestBrowser> {
    Arc::new(TestBrowser { number, has_exited: AtomicBool::new(false) })
}

pub(super) fn account(name: &str) -> AccountId {
    AccountId::from_text(name)
}

pub(super) fn soon() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

pub(super) fn occupancy(slots: usize, busy: usize, waiting: usize) -> Occupancy {
    Occupancy { slots, busy, waiting }
}

#[tokio::test]
async fn a_released_slot_goes_to_the_next_job() {
    let queue = queue(1, 8);
    let first = queue.lease((account("a"), 0), soon()).await.unwrap();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.lease((account("b"), 0), soon()).await }
    });
    while queue.occupancy().waiting == 0 {
        tokio::task::yield_now().await;
    }
    drop(first);
    let second = waiting.await.unwrap().unwrap();
    assert_eq!(queue.occupancy(), occupancy(1, 1, 0));
    drop(second);
    queue.idle().await;
    assert_eq!(queue.occupancy(), occupancy(1, 0, 0));
}

#[tokio::test]
async fn a_cancelled_wait_keeps_no_slot() {
    let queue = queue(1, 8);
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let owner = account("b");
    let mut context = Context::from_waker(Waker::noop());
    // One is dropped while it waits, the other after it was granted the slot and before it was polled.
    let mut waits = Box::pin(queue.lease((owner.clone(), 0), soon()));
    let mut wins = Box::pin(queue.lease((owner.clone(), 0), soon()));
    assert!(waits.as_mut().poll(&mut context).is_pending());
    assert!(wins.as_mut().poll(&mut context).is_pending());
    drop(waits);
    assert_eq!(queue.occupancy(), occupancy(1, 1, 1));
    drop(slot);
    assert_eq!(queue.occupancy(), occupancy(1, 1, 0));
    drop(wins);
    assert_eq!(queue.occupancy(), occupancy(1, 0, 0));
}

#[tokio::test]
async fn a_job_is_rejected_at_once_if_the_queue_is_full() {
    let queue = queue(1, 0);
    let _slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let refusal = queue.lease((account("b"), 0), soon()).await.unwrap_err();
    assert_eq!(refusal.refusal, Refusal::QueueFull { retry_after: 1 });
}

#[tokio::test]
async fn one_account_cannot_fill_the_queue_for_another() {
    let queue = queue(1, 2);
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let greedy = account("a");
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(queue.lease((greedy.clone(), 0), soon()));
    let mut second = Box::pin(queue.lease((greedy.clone(), 0), soon()));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    let other = account("b");
    let mut third = Box::pin(queue.lease((other.clone(), 0), soon()));
    assert!(third.as_mut().poll(&mut context).is_pending());
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
async fn draining_rejects_new_jobs_and_ends_with_the_last_one() {
    let queue = queue(1, 8);
    let slot = queue.lease((account("a"), 0), soon()).await.unwrap();
    let owner = account("b");
    let mut waits = Box::pin(queue.lease((owner.clone(), 0), soon()));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    queue.state().draining = true;
    assert_eq!(queue.lease((owner.clone(), 0), soon()).await.unwrap_err(), Refusal::Draining.into());
    let mut idle = Box::pin(queue.idle());
    assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(slot);
    let last = waits.await.unwrap();
    assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(last);
    idle.await;
}

#[tokio::test(start_paused = true)]
async fn long_jobs_allow_others_to_run_in_addition() {
    let queue = queue(2, 64);
    let long: Vec<AccountId> = ["l1", "l2", "l3", "l4"].iter().map(|name| account(name)).collect();
    let one = queue.lease((long[0].clone(), 0), soon()).await.unwrap();
    let two = queue.lease((long[1].clone(), 0), soon()).await.unwrap();
    let short = account("short");
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = Box::pin(queue.lease((short.clone(), 0), soon()));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    tokio::time::advance(Duration::from_secs(2)).await;
    one.mark_long();
    drop(waiting.await.unwrap());
    two.mark_long();
    let three = queue.lease((long[2].clone(), 0), soon()).await.unwrap();
    three.mark_long();
    drop(queue.lease((short.clone(), 0), soon()).await.unwrap());
    // Accounts with a recent long job never have all browsers.
    drop((one, two, three));
    let _one = queue.lease((long[0].clone(), 0), soon()).await.unwrap();
    let _two = queue.lease((long[1].clone(), 0), soon()).await.unwrap();
    let third = queued(&queue, &long[2], Duration::from_mins(1));
    // Not even a job that has little time waits for theirs.
    drop(queue.lease((short.clone(), 0), Instant::now() + Duration::from_millis(50)).await.unwrap());
    drop(third);
}

#[tokio::test]
async fn a_long_job_lets_another_browser_start_for_a_job_that_waits() {
    let queue = JobQueue::new(1, 8);
    queue.state().add(&browser(0));
    let permits = || queue.state().demand.available_permits();
    let first = queue.lease((account("a"), 0), soon()).await.unwrap();
    first.mark_long();
    assert_eq!(permits(), 0);
    let owner = account("b");
    let waiting = queued(&queue, &owner, Duration::from_mins(1));
    let other = queued(&queue, &owner, Duration::from_mins(1));
    assert_eq!(permits(), 1);
    queue.state().add(&browser(1));
    let second = waiting.await.unwrap();
    second.mark_long();
    // No more than twice the slots.
    assert_eq!((permits(), queue.occupancy()), (1, occupancy(1, 2, 1)));
    drop((first, second, other));
}

#[tokio::test]
async fn a_job_gets_the_browser_that_suits_it_best_and_another_try_is_next() {
    let queue = queue(1, 8);
    let owner = account("a");
    let lease = queue.lease((owner.clone(), 1), soon()).await.unwrap();
    assert_eq!(lease.pooled.number, 1);
    let waiting = queued(&queue, &owner, Duration::from_mins(1));
    let mut again = Box::pin(queue.lease_again((owner.clone(), 0), soon()));
    assert!(again.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(lease);
    let again = again.await.unwrap();
    assert_eq!((again.pooled.number, queue.occupancy()), (0, occupancy(1, 1, 1)));
    drop(again);
    drop(waiting.await.unwrap());
}

#[tokio::test]
async fn a_job_waits_for_a_browser_unless_none_can_be_started() {
    let queue = JobQueue::new(1, 8);
    let owner = account("a");
    let waiting = queued(&queue, &owner, Duration::from_mins(1));
    let only = browser(0);
    queue.state().add(&only);
    drop(waiting.await.unwrap());
    only.has_exited.store(true, Ordering::Relaxed);
    let waiting = queued(&queue, &owner, Duration::from_mins(1));
    queue.state().start_failed(0, LaunchError::Closed);
    assert_eq!(waiting.await.unwrap_err(), Refusal::NoBrowser.into());
    assert_eq!(queue.lease((owner.clone(), 0), soon()).await.unwrap_err(), Refusal::NoBrowser.into());
    queue.state().started(0, Some(&only), &browser(1));
    assert_eq!(queue.ready(), 1);
    drop(queue.lease((owner.clone(), 0), soon()).await.unwrap());
}

#[tokio::test]
async fn one_account_gets_half_of_the_slots_while_others_wait() {
    let queue = queue(2, 64);
    let (greedy, other) = (account("a"), account("b"));
    let first = queue.lease((greedy.clone(), 0), soon()).await.unwrap();
    let _second = queue.lease((greedy.clone(), 0), soon()).await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut third = Box::pin(queue.lease((greedy.clone(), 0), soon()));
    assert!(third.as_mut().poll(&mut context).is_pending());
    let mut waiting = Box::pin(queue.lease((other.clone(), 0), soon()));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    drop(first);
    let _other = waiting.await.unwrap();
    assert!(third.as_mut().poll(&mut context).is_pending());
}

/// A job of the account that has waited since it was polled once.
pub(super) fn queued<'a>(
    queue: &'a TestQueue,
    account: &'a AccountId,
    time_left: Duration,
) -> std::pin::Pin<Box<impl Future<Output = Result<Lease<TestBrowser>, Refused>> + 'a>> {
    let mut waiting = Box::pin(queue.lease((account.clone(), 0), Instant::now() + time_left));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    waiting
}
