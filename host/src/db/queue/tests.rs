use std::sync::atomic::AtomicUsize;

use futures::{FutureExt as _, future::join_all, poll};
use tokio::time::{Instant, sleep};

use super::*;

type Names = Arc<Mutex<Vec<String>>>;

/// A queue that runs one statement at a time, for half a second each, and the statements in the order in which it started
/// them.
fn queue() -> (Arc<StatementQueue>, Names) {
    let started = Names::default();
    let names = Arc::clone(&started);
    let queue = StatementQueue::new(1, 1, Duration::ZERO, move |batch| {
        names.lock().extend(batch.iter().map(|queued| queued.sql.clone()));
        tokio::spawn(async move {
            sleep(Duration::from_millis(500)).await;
            answer(batch);
        })
    });
    (queue, started)
}

fn answer(batch: Vec<Queued>) {
    for queued in batch {
        let _ = queued.reply.send(Ok(vec![]));
    }
}

async fn run(queue: &Arc<StatementQueue>, flow: FlowId, name: &str) -> Result<Vec<Row>, DbError> {
    queue.run(flow, name.to_owned(), vec![]).await
}

#[tokio::test(start_paused = true)]
async fn flows_are_served_in_turn() {
    let (queue, started) = queue();
    let mut busy = Box::pin(join_all((0..4).map(|_| run(&queue, FlowId::of("busy"), "busy"))));
    assert!(poll!(&mut busy).is_pending());
    let (one, other) = (FlowId::of("one"), FlowId::of("other"));
    let others = join_all([run(&queue, one, "one"), run(&queue, one, "one"), run(&queue, other, "other")]);
    let (busy, others) = tokio::join!(busy, others);
    assert!(busy.into_iter().chain(others).all(|result| result.is_ok()));
    assert_eq!(*started.lock(), ["busy", "one", "other", "busy", "one", "busy", "busy"]);
    let state = queue.state.lock();
    assert_eq!((state.queued.len(), state.runners), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_statement_whose_caller_has_gone_is_not_run_unless_it_has_begun() {
    let (queue, started) = queue();
    let mut running = Box::pin(run(&queue, FlowId::of(1), "running"));
    let mut abandoned = Box::pin(run(&queue, FlowId::of(1), "abandoned"));
    let mut alone = Box::pin(run(&queue, FlowId::of(2), "alone in its flow"));
    for statement in [&mut running, &mut abandoned, &mut alone] {
        assert!(poll!(statement).is_pending());
    }
    sleep(Duration::from_millis(1)).await;
    drop((running, abandoned, alone));
    run(&queue, FlowId::of(2), "last").await.unwrap();
    assert_eq!(*started.lock(), ["running", "last"]);
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_waits_too_long_is_refused_and_never_run() {
    let (queue, started) = queue();
    let began = Instant::now();
    let results = join_all((0..20).map(|number| run(&queue, FlowId::of(number), "x"))).await;
    let refused = results.iter().filter(|result| matches!(result, Err(DbError::Busy))).count();
    assert_eq!(began.elapsed().as_secs(), TURN_TIMEOUT.as_secs());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(started.lock().len() + refused, 20);
    assert!(refused > 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_a_statement_of_the_flow_with_the_most() {
    let (queue, _) = queue();
    let flow = FlowId::default();
    let mut waiting = Box::pin(join_all((1..MAX_QUEUED).map(|_| run(&queue, flow, "x"))));
    let mut last = Box::pin(run(&queue, flow, "x"));
    assert!(poll!(&mut waiting).is_pending() && poll!(&mut last).is_pending());
    assert!(matches!(run(&queue, flow, "x").now_or_never(), Some(Err(DbError::Busy))));
    let mut other = Box::pin(run(&queue, FlowId::of("other"), "x"));
    assert!(poll!(&mut other).is_pending());
    assert!(matches!(last.now_or_never(), Some(Err(DbError::Busy))));
}

#[tokio::test(start_paused = true)]
async fn a_batch_delays_the_next_one_by_its_number_of_statements() {
    let (began, times) = (Instant::now(), Arc::<Mutex<Vec<_>>>::default());
    let started = Arc::clone(&times);
    let queue = StatementQueue::new(2, 3, Duration::from_millis(2), move |batch: Vec<Queued>| {
        started.lock().push((began.elapsed().as_millis(), batch.len()));
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            answer(batch);
        })
    });
    let statements = join_all((0..8).map(|_| run(&queue, FlowId::default(), "x"))).await;
    assert!(statements.into_iter().all(|result| result.is_ok()));
    // The third one waits until the first one has ended, because at most two are in progress.
    assert_eq!(*times.lock(), [(0, 3), (6, 3), (100, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_batch_does_not_block_those_after_it() {
    let calls = AtomicUsize::new(0);
    let queue = StatementQueue::new(1, 1, Duration::ZERO, move |batch: Vec<Queued>| {
        let stalls = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        tokio::spawn(async move {
            sleep(Duration::from_secs(if stalls { 60 } else { 0 })).await;
            answer(batch);
        })
    });
    let began = Instant::now();
    let stalled = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { run(&queue, FlowId::default(), "x").await }
    });
    sleep(Duration::from_secs(1)).await;
    run(&queue, FlowId::default(), "x").await.unwrap();
    assert_eq!(began.elapsed().as_secs(), TURN_TIMEOUT.as_secs());
    stalled.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_panic_fails_its_statement_only() {
    let calls = AtomicUsize::new(0);
    let queue = StatementQueue::new(1, 1, Duration::ZERO, move |batch: Vec<Queued>| {
        let panics = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        tokio::spawn(async move {
            assert!(!panics, "a panic of a test");
            answer(batch);
        })
    });
    assert!(matches!(run(&queue, FlowId::default(), "x").await, Err(DbError::Panicked)));
    run(&queue, FlowId::default(), "x").await.unwrap();
}
