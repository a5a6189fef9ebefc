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
async fn a_job_that_cannot_get_a_slot_in_time_is_rejected_at_once() {
    let admission = Admission::new(1, 8);
    let slot = admission.admit(&account("a"), soon()).await.unwrap();
    let late = admission.admit(&account("a"), Instant::now() + Duration::from_millis(5)).await;
    assert_eq!(late.unwrap_err(), Refusal::NoSlotInTime { retry_after: 1 });
    // A job takes 20 s here, so a deadline in 10 s cannot be met.
    tokio::time::advance(Duration::from_secs(20)).await;
    drop(slot);
    let _slot = admission.admit(&account("a"), soon()).await.unwrap();
    let before = Instant::now();
    let rejected = admission.admit(&account("a"), before + Duration::from_secs(10)).await;
    assert_eq!(rejected.unwrap_err(), Refusal::NoSlotInTime { retry_after: 21 });
    assert_eq!(Instant::now(), before);
}

#[tokio::test]
async fn draining_rejects_waiting_jobs_and_ends_with_the_last_running_one() {
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
