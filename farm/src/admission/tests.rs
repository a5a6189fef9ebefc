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
async fn a_released_slot_goes_to_the_next_job() {
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
async fn a_cancelled_wait_keeps_no_slot() {
    let admission = Admission::new(1, 8);
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    let owner = account("b");
    let mut context = Context::from_waker(Waker::noop());
    // One is dropped while it waits, the other after it was granted the slot and before it was polled.
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
async fn a_job_is_rejected_at_once_if_the_queue_is_full() {
    let admission = Admission::new(1, 0);
    let _slot = admission.admit(&account("a"), soon()).await.unwrap();
    let refusal = admission.admit(&account("b"), soon()).await.unwrap_err();
    assert_eq!(refusal.refusal, Refusal::QueueFull { retry_after: 1 });
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
    assert!(matches!(second.await.unwrap_err().refusal, Refusal::QueueFull { .. }));
    drop(slot);
    drop(first.await.unwrap());
    third.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_get_a_slot_in_time_is_rejected_at_once() {
    let admission = Admission::new(1, 8);
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    let late = admission.admit(&account("a"), Instant::now() + Duration::from_millis(5)).await;
    assert_eq!(late.unwrap_err(), Refusal::NoSlotInTime { retry_after: 1 }.into());
    // A job takes 20 s here, so a deadline in 10 s cannot be met.
    tokio::time::advance(Duration::from_secs(20)).await;
    drop(slot);
    let _slot = admission.admit(&account("a"), soon()).await.unwrap();
    let before = Instant::now();
    let rejected = admission.admit(&account("a"), before + Duration::from_secs(10)).await;
    let refusal = Refusal::NoSlotInTime { retry_after: 20 };
    assert_eq!(rejected.unwrap_err(), Refused { refusal, not_before: Some(MAX_NOT_BEFORE) });
    assert_eq!(Instant::now(), before);
}

#[tokio::test]
async fn draining_rejects_new_jobs_and_ends_with_the_last_one() {
    let admission = Admission::new(1, 8);
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    let owner = account("b");
    let mut waits = Box::pin(admission.admit(&owner, soon()));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    admission.drain();
    assert_eq!(admission.admit(&owner, soon()).await.unwrap_err(), Refusal::Draining.into());
    let mut idle = Box::pin(admission.idle());
    assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(slot);
    let last = waits.await.unwrap();
    assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(last);
    idle.await;
}

#[tokio::test(start_paused = true)]
async fn long_jobs_allow_others_to_run_in_addition() {
    let admission = Admission::new(2, 64);
    let long: Vec<AccountId> = ["l1", "l2", "l3", "l4"].iter().map(|name| account(name)).collect();
    let one = admission.admit(&long[0], soon()).await.unwrap();
    let two = admission.admit(&long[1], soon()).await.unwrap();
    let short = account("short");
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = Box::pin(admission.admit(&short, soon()));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    tokio::time::advance(Duration::from_secs(2)).await;
    one.mark_long();
    drop(waiting.await.unwrap());
    two.mark_long();
    let three = admission.admit(&long[2], soon()).await.unwrap();
    three.mark_long();
    drop(admission.admit(&short, soon()).await.unwrap());
    // Accounts with recent long jobs never hold more than the number of slots.
    drop((one, two, three));
    let _one = admission.admit(&long[0], soon()).await.unwrap();
    let _two = admission.admit(&long[1], soon()).await.unwrap();
    let mut third = Box::pin(admission.admit(&long[2], soon()));
    assert!(third.as_mut().poll(&mut context).is_pending());
    drop(admission.admit(&short, soon()).await.unwrap());
}

#[tokio::test]
async fn one_account_gets_half_of_the_slots_while_others_wait() {
    let admission = Admission::new(2, 64);
    let (greedy, other) = (account("a"), account("b"));
    let first = admission.admit(&greedy, soon()).await.unwrap();
    let _second = admission.admit(&greedy, soon()).await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut third = Box::pin(admission.admit(&greedy, soon()));
    assert!(third.as_mut().poll(&mut context).is_pending());
    let mut waiting = Box::pin(admission.admit(&other, soon()));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    drop(first);
    let _other = waiting.await.unwrap();
    assert!(third.as_mut().poll(&mut context).is_pending());
}

/// A job of the account that has waited since it was polled once.
fn queued<'a>(
    admission: &'a Admission,
    account: &'a AccountId,
    time_left: Duration,
) -> std::pin::Pin<Box<impl Future<Output = Result<Slot, Refused>> + 'a>> {
    let mut waiting = Box::pin(admission.admit(account, Instant::now() + time_left));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    waiting
}

const NO_SLOT_IN_TIME: Refusal = Refusal::NoSlotInTime { retry_after: 1 };

#[tokio::test(start_paused = true)]
async fn a_job_without_time_for_a_render_gets_no_slot() {
    let admission = Admission::new(2, 8);
    for time_left in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(19)] {
        let refused = admission.admit(&account("a"), Instant::now() + time_left).await.unwrap_err();
        assert_eq!(refused, NO_SLOT_IN_TIME.into(), "{time_left:?}");
    }
    assert_eq!(admission.occupancy(), occupancy(2, 0, 0));
    admission.admit(&account("a"), Instant::now() + MIN_RENDER_TIME).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_is_rejected_while_it_could_still_be_rendered_in_time() {
    let admission = Admission::new(1, 8);
    let _slot = admission.admit(&account("a"), soon()).await.unwrap();
    let before = Instant::now();
    let refused = admission.admit(&account("b"), before + Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(refused, NO_SLOT_IN_TIME.into());
    assert!(before.elapsed() + MIN_RENDER_TIME <= Duration::from_secs(2), "{:?}", before.elapsed());
}

/// As after SIGSTOP and SIGCONT: no timer has run in the meantime.
#[tokio::test(start_paused = true)]
async fn a_free_slot_is_not_given_to_a_job_that_is_late() {
    let admission = Admission::new(1, 8);
    let (late, in_time) = (account("b"), account("c"));
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    let waiting = queued(&admission, &late, Duration::from_secs(30));
    let other = queued(&admission, &in_time, Duration::from_mins(5));
    tokio::time::advance(Duration::from_secs(40)).await;
    drop(slot);
    assert_eq!(admission.occupancy(), occupancy(1, 1, 0));
    assert!(matches!(waiting.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    drop(other.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_received_too_late_is_given_to_the_next_job() {
    let admission = Admission::new(1, 8);
    let (first, second) = (account("b"), account("c"));
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    let waiting = queued(&admission, &first, Duration::from_secs(30));
    let other = queued(&admission, &second, Duration::from_mins(5));
    drop(slot);
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(matches!(waiting.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    drop(other.await.unwrap());
    assert_eq!(admission.occupancy(), occupancy(1, 0, 0));
    // The 40 s of the slot that was not used are not the time of a job.
    assert_eq!(admission.state().slot_times.average_seconds, Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_is_rejected_when_jobs_become_too_slow_for_it() {
    let admission = Admission::new(1, 8);
    let owner = account("b");
    let mut slot = admission.admit(&account("a"), soon()).await.unwrap();
    let mut waiting: Vec<_> = (0..8).map(|_| queued(&admission, &owner, Duration::from_secs(30))).collect();
    // The first job takes 12 s. At half of that, the fourth of the queued jobs starts after 30 s.
    tokio::time::advance(Duration::from_secs(12)).await;
    drop(slot);
    assert_eq!(admission.occupancy(), occupancy(1, 1, 3));
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
    const JOB_TIME: Duration = Duration::from_millis(100);
    let admission = Admission::new(2, QUEUE);
    let owner = account("a");
    let warm_up = admission.admit(&owner, soon()).await.unwrap();
    tokio::time::advance(JOB_TIME).await;
    drop(warm_up);
    let mut running: Vec<Slot> = Vec::new();
    for _ in 0..2 {
        running.push(admission.admit(&owner, soon()).await.unwrap());
    }
    let mut waiting: std::collections::VecDeque<_> =
        (0..QUEUE).map(|_| queued(&admission, &owner, Duration::from_mins(1))).collect();
    let refused = admission.admit(&owner, soon()).await.unwrap_err();
    assert_eq!(refused.refusal, Refusal::QueueFull { retry_after: 4 });
    let not_before = refused.not_before.unwrap();
    let end = Instant::now() + not_before;
    while Instant::now() + JOB_TIME <= end {
        tokio::time::advance(JOB_TIME).await;
        for slot in std::mem::take(&mut running) {
            drop(slot);
            running.push(waiting.pop_front().unwrap().await.unwrap());
        }
    }
    let left = admission.occupancy().waiting;
    assert!((QUEUE / 2..QUEUE).contains(&left), "{left} jobs wait after {not_before:?}");
    // An account with no job in a queue that others fill may come again at once.
    let others: Vec<AccountId> = (0..QUEUE).map(|number| account(&number.to_string())).collect();
    let _full: Vec<_> =
        others.iter().skip(left).map(|other| queued(&admission, other, JOB_TIME * 600)).collect();
    let _one_each: Vec<_> =
        others.iter().take(left - 1).map(|other| queued(&admission, other, JOB_TIME * 600)).collect();
    let refused = admission.admit(&account("new"), soon()).await.unwrap_err();
    assert_eq!(refused.not_before, Some(MIN_NOT_BEFORE));
}

/// A farm whose last jobs took this time each, with its only slot taken.
async fn busy_after_jobs_of(job_time: Duration) -> (Admission, Slot) {
    let admission = Admission::new(1, 8);
    for _ in 0..40 {
        let slot = admission.admit(&account("a"), soon()).await.unwrap();
        tokio::time::advance(job_time).await;
        drop(slot);
    }
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    (admission, slot)
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_gets_no_slot_with_less_time_than_recent_jobs_needed() {
    let (admission, slot) = busy_after_jobs_of(Duration::from_millis(500)).await;
    let (late, in_time) = (account("b"), account("c"));
    let waiting = queued(&admission, &late, Duration::from_secs(10));
    let other = queued(&admission, &in_time, Duration::from_secs(20));
    tokio::time::advance(Duration::from_millis(9_501)).await;
    drop(slot);
    assert!(matches!(waiting.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    drop(other.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_gets_a_slot_with_as_much_time_as_recent_jobs_needed() {
    let (admission, slot) = busy_after_jobs_of(Duration::from_millis(500)).await;
    let owner = account("b");
    let waiting = queued(&admission, &owner, Duration::from_secs(10));
    tokio::time::advance(Duration::from_millis(9_499)).await;
    drop(slot);
    drop(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn long_jobs_do_not_prevent_that_a_job_waits_for_most_of_its_time() {
    let (admission, slot) = busy_after_jobs_of(Duration::from_millis(300)).await;
    let owner = account("b");
    // It waits for three quarters of its time at most, although recent jobs needed more than the last quarter.
    let waiting = queued(&admission, &owner, Duration::from_millis(800));
    tokio::time::advance(Duration::from_millis(590)).await;
    drop(slot);
    drop(waiting.await.unwrap());
    // A job that finds a free slot starts with less time.
    admission.admit(&owner, Instant::now() + MIN_RENDER_TIME).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_only_with_the_time_that_it_needs() {
    let deadline = Instant::now() + Duration::from_secs(5);
    assert!(has_time(deadline, Duration::from_secs(5)) && !has_time(deadline, Duration::from_millis(5_001)));
    let soon = Instant::now() + MIN_RENDER_TIME;
    assert!(can_end_by(soon) && !can_end_by(soon - Duration::from_millis(1)));
}
