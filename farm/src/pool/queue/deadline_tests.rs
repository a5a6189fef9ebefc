use platen_shared::id::AccountId;

use super::{tests::*, *};

const NO_SLOT_IN_TIME: Refusal = Refusal::NoSlotInTime { retry_after: 1 };

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
async fn a_waiting_job_gets_no_slot_with_less_time_than_recent_jobs_needed() {
    let (queue, slot) = busy_after_jobs_of(Duration::from_millis(500)).await;
    let (late, in_time) = (account("b"), account("c"));
    let waiting = queued(&queue, &late, Duration::from_secs(10));
    let other = queued(&queue, &in_time, Duration::from_secs(20));
    tokio::time::advance(Duration::from_millis(9_501)).await;
    drop(slot);
    assert!(matches!(waiting.await.unwrap_err().refusal, Refusal::NoSlotInTime { .. }));
    drop(other.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_gets_a_slot_with_as_much_time_as_recent_jobs_needed() {
    let (queue, slot) = busy_after_jobs_of(Duration::from_millis(500)).await;
    let owner = account("b");
    let waiting = queued(&queue, &owner, Duration::from_secs(10));
    tokio::time::advance(Duration::from_millis(9_499)).await;
    drop(slot);
    drop(waiting.await.unwrap());
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
