//! Which browsers are started, and when jobs are refused because none starts.

use super::*;

#[tokio::test]
async fn a_long_job_lets_another_browser_start_for_a_job_that_waits() {
    let queue = JobQueue::new(1, 8);
    queue.state().add(&browser(0));
    let permits = || queue.state().demand.available_permits();
    let first = queue.lease((account("a"), 0), soon()).await.unwrap();
    first.mark_long();
    assert_eq!(permits(), 0);
    let owner = account("b");
    let waiting = queued(&queue, &owner, MINUTE);
    let other = queued(&queue, &owner, MINUTE);
    assert_eq!(permits(), 1);
    queue.state().add(&browser(1));
    let second = waiting.await.unwrap();
    second.mark_long();
    // No more than twice the slots.
    assert_eq!((permits(), queue.occupancy()), (1, occupancy(1, 2, 1)));
    drop((first, second, other));
}

#[tokio::test]
async fn a_browser_that_ended_because_it_was_idle_starts_again_for_a_job_that_waits() {
    let queue = JobQueue::new(2, 8);
    let browsers = [browser(0), browser(1)];
    for browser in &browsers {
        queue.state().add(browser);
    }
    queue.state().end_until_demand(1, Some(&browsers[1]));
    let permits = || queue.state().demand.available_permits();
    let first = queue.lease((account("a"), 0), soon()).await.unwrap();
    assert_eq!((permits(), queue.ready()), (0, 1));
    let owner = account("b");
    let waiting = queued(&queue, &owner, MINUTE);
    let other = queued(&queue, &owner, MINUTE);
    // No more than the slots.
    assert_eq!(permits(), 1);
    queue.state().add(&browsers[1]);
    drop((first, other, waiting.await.unwrap()));
    // Jobs are refused only if no browser that is wanted starts.
    queue.state().remove(&browsers[0]);
    queue.state().remove(&browsers[1]);
    queue.state().start_failed(0, LaunchError::Closed);
    assert!(!queue.state().has_failed());
    queue.state().end_until_demand(1, None);
    assert!(queue.state().has_failed());
}

#[tokio::test]
async fn a_job_waits_for_a_browser_unless_none_can_be_started() {
    let queue = JobQueue::new(1, 8);
    let owner = account("a");
    let waiting = queued(&queue, &owner, MINUTE);
    let only = browser(0);
    queue.state().add(&only);
    drop(waiting.await.unwrap());
    only.has_exited.store(true, Ordering::Relaxed);
    let waiting = queued(&queue, &owner, MINUTE);
    queue.state().start_failed(0, LaunchError::Closed);
    assert_eq!(waiting.await.unwrap_err(), Refusal::NoBrowser.into());
    assert_eq!(queue.lease((owner.clone(), 0), soon()).await.unwrap_err(), Refusal::NoBrowser.into());
    queue.state().started(0, Some(&only), &browser(1));
    assert_eq!(queue.ready(), 1);
    drop(queue.lease((owner.clone(), 0), soon()).await.unwrap());
}
