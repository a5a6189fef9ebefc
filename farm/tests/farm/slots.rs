//! Slots that are kept for jobs which are sent once they have one.

use std::sync::Arc;

use platen_shared::wire;
use platen_tests::wait;
use reqwest::Response;

use crate::{
    Test,
    support::{MAX_WAIT_MS, Shared, farm_process::FarmProcess, held_page::HeldPage, html, send},
};

pub(crate) const TESTS: &[Test] = &[
    ("a slot is kept for the job that waited for it", |s| Box::pin(kept(s))),
    ("a slot whose job does not arrive is free again", |s| Box::pin(expired(s))),
    ("a wait for a slot ends with its caller, a cancellation or its deadline", |s| Box::pin(ended(s))),
    ("a farm that shuts down renders the jobs that have a slot", |s| Box::pin(draining(s))),
    ("a wait for a slot that is not valid is refused", |s| Box::pin(invalid(s))),
];

async fn status_and_body(response: reqwest::Result<Response>) -> (u16, String) {
    let response = response.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Whether a job that must not wait gets a slot.
async fn has_free_slot(farm: &FarmProcess) -> bool {
    let response = farm.post(&html("<p>x")).header(wire::NO_QUEUE, "1").send().await.unwrap();
    response.status() == 200
}

/// The page of a job is reset after its response.
async fn until_free(farm: &FarmProcess) {
    let is_free = async || Ok(has_free_slot(farm).await.then_some(()));
    wait::until_some("the slot is free", is_free).await.unwrap();
}

async fn kept(_: Arc<Shared>) {
    let held = HeldPage::start(&["--browsers", "1"]).await;
    let running = held.post();
    held.until_loading(1).await;
    let farm = &held.farm;
    let waiting = tokio::spawn(farm.slot("one", "job-1").send());
    farm.until_metric("platen_farm_queue_length", 1).await;
    held.latch.open();
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    assert_eq!(status_and_body(waiting.await.unwrap()).await, (204, String::new()));
    assert!(!has_free_slot(farm).await);
    let job = farm.post(&html("<p>x")).header(wire::JOB_ID, "job-1").header(wire::NO_QUEUE, "1");
    assert_eq!(job.send().await.unwrap().status(), 200);
    until_free(farm).await;
    held.farm.end().await;
}

async fn expired(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    // The second gets the slot when the first has expired.
    for _ in 0..2 {
        assert_eq!(farm.slot("one", "job-1").send().await.unwrap().status(), 204);
    }
    farm.until_metric("platen_farm_slots_busy", 0).await;
    assert_eq!(send(&farm, &html("<p>x"), MAX_WAIT_MS).await.0, 200);
    farm.end().await;
}

async fn ended(_: Arc<Shared>) {
    let held = HeldPage::start(&["--browsers", "1"]).await;
    let running = held.post();
    held.until_loading(1).await;
    let farm = &held.farm;
    let waiting = || tokio::spawn(farm.slot("one", "job-1").send());
    let left = waiting();
    farm.until_metric("platen_farm_queue_length", 1).await;
    left.abort();
    farm.until_metric("platen_farm_queue_length", 0).await;
    let cancelled = waiting();
    farm.until_metric("platen_farm_queue_length", 1).await;
    farm.cancel("job-1").await;
    let cancelled = status_and_body(cancelled.await.unwrap()).await;
    assert_eq!(cancelled, (499, r#"{"code":"cancelled","page_ran":false}"#.to_owned()));
    let late = farm.slot("one", "job-1").header(wire::DEADLINE_MS, 500).send().await;
    let (status, body) = status_and_body(late).await;
    assert!(status == 503 && body.contains("no_slot_in_time"), "{status} {body}");
    assert_eq!(farm.metric("platen_farm_queue_length").await, 0);
    held.latch.open();
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    held.farm.end().await;
}

async fn draining(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    assert_eq!(farm.slot("one", "job-1").send().await.unwrap().status(), 204);
    let waiting = tokio::spawn(farm.slot("one", "job-2").send());
    farm.until_metric("platen_farm_queue_length", 1).await;
    farm.terminate();
    let refused = status_and_body(waiting.await.unwrap()).await;
    assert_eq!(refused, (503, r#"{"code":"draining"}"#.to_owned()));
    let job = farm.post(&html("<p>x")).header(wire::JOB_ID, "job-1").send().await;
    assert_eq!(job.unwrap().status(), 200);
    farm.ended(&[]).await;
}

async fn invalid(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let invalid = (400, r#"{"code":"invalid_job"}"#.to_owned());
    for (id, body) in [("job-1", "{}"), ("job-1", "x"), ("job 1", r#"{"account":"a"}"#)] {
        let request = farm.slot("one", id).body(body);
        assert_eq!(status_and_body(request.send().await).await, invalid, "{id} {body}");
    }
    assert_eq!(farm.metric("platen_farm_slots_busy").await, 0);
    until_free(&farm).await;
    farm.end().await;
}
