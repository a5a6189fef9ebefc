//! Statements that wait for their turn.
//!
//! Invariant: flows are served round robin, and the statements of one flow in order. A statement waits at most
//! [`QUEUE_TIMEOUT`]; one whose caller has gone away before its turn is not run, and one that runs is finished
//! without its caller.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{error::DbError, flow::Flow, result::QueryResult};

/// Shorter than the deadline of a render, so that a claim that was not run is refused in time.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bounds the memory: more than the requests that the server handles at once.
const MAX_QUEUED_PER_FLOW: usize = 1024;
/// A batch that takes longer no longer delays those after it, because its connection may be broken.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Further stalled batches delay those after them.
const MAX_STALLED_BATCHES: usize = 8;

/// A statement in the queue.
pub(super) struct Queued<J> {
    pub(super) job: J,
    reply: oneshot::Sender<Result<QueryResult, DbError>>,
    number: u64,
}

impl<J> Queued<J> {
    /// The statement without its caller, and the caller, which gets the result.
    pub(super) fn into_parts(self) -> (J, impl FnOnce(Result<QueryResult, DbError>) + Send) {
        let Self { job, reply, .. } = self;
        (job, |result| {
            // The caller may have gone away.
            let _ = reply.send(result);
        })
    }
}

/// Starts a batch. It runs until it has ended, also if the handle is dropped.
type Execute<J> = Box<dyn Fn(Vec<Queued<J>>) -> JoinHandle<()> + Send + Sync>;

pub(super) struct StatementQueue<J> {
    state: Mutex<State<J>>,
    max_concurrent_batches: usize,
    max_batch: usize,
    stalled: Arc<Semaphore>,
    execute: Execute<J>,
}

struct State<J> {
    queued: HashMap<Flow, VecDeque<Queued<J>>>,
    /// Each flow with queued statements once, the next one first.
    turns: VecDeque<Flow>,
    /// Tasks that take batches from the queue.
    runners: usize,
    next_number: u64,
}

impl<J: Send + 'static> StatementQueue<J> {
    /// `execute` gets at most `max_batch` statements and is called for at most `max_concurrent_batches` at once.
    pub(super) fn new(
        max_concurrent_batches: usize,
        max_batch: usize,
        execute: impl Fn(Vec<Queued<J>>) -> JoinHandle<()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let state = State { queued: HashMap::new(), turns: VecDeque::new(), runners: 0, next_number: 0 };
        Arc::new(Self {
            state: Mutex::new(state),
            max_concurrent_batches,
            max_batch,
            stalled: Arc::new(Semaphore::new(MAX_STALLED_BATCHES)),
            execute: Box::new(execute),
        })
    }

    /// The result of a statement. Dropping the future removes the statement if it still waits.
    pub(super) async fn run(self: &Arc<Self>, flow: Flow, job: J) -> Result<QueryResult, DbError> {
        let (reply, mut result) = oneshot::channel();
        let place = Place { queue: self, flow, number: self.push(flow, job, reply)? };
        let waited = timeout(QUEUE_TIMEOUT, &mut result).await;
        if waited.is_err() && place.leave() {
            return Err(DbError::Busy);
        }
        let result = match waited {
            Ok(result) => result,
            Err(_) => result.await,
        };
        result.map_err(|_| DbError::Panicked)?
    }

    fn push(
        self: &Arc<Self>,
        flow: Flow,
        job: J,
        reply: oneshot::Sender<Result<QueryResult, DbError>>,
    ) -> Result<u64, DbError> {
        let mut guard = self.state();
        let state = &mut *guard;
        let queued = state.queued.entry(flow).or_default();
        if queued.len() >= MAX_QUEUED_PER_FLOW {
            return Err(DbError::Busy);
        }
        if queued.is_empty() {
            state.turns.push_back(flow);
        }
        let number = state.next_number;
        queued.push_back(Queued { job, reply, number });
        state.next_number += 1;
        if state.runners < self.max_concurrent_batches {
            state.runners += 1;
            tokio::spawn(Arc::clone(self).run_batches());
        }
        Ok(number)
    }

    async fn run_batches(self: Arc<Self>) {
        while let Some(batch) = self.next_batch() {
            let mut running = (self.execute)(batch);
            if timeout(STALL_TIMEOUT, &mut running).await.is_ok() {
                continue;
            }
            match Arc::clone(&self.stalled).try_acquire_owned() {
                Ok(permit) => drop(tokio::spawn(async move {
                    let _permit = permit;
                    let _ = running.await;
                })),
                Err(_) => drop(running.await),
            }
        }
    }

    /// The next statements, one of each flow in turn. Without any the runner ends.
    fn next_batch(&self) -> Option<Vec<Queued<J>>> {
        let mut guard = self.state();
        let state = &mut *guard;
        let mut batch = Vec::new();
        while batch.len() < self.max_batch
            && let Some(flow) = state.turns.pop_front()
        {
            if let Entry::Occupied(mut queued) = state.queued.entry(flow) {
                batch.extend(queued.get_mut().pop_front());
                if queued.get().is_empty() {
                    queued.remove();
                } else {
                    state.turns.push_back(flow);
                }
            }
        }
        if batch.is_empty() {
            state.runners -= 1;
            return None;
        }
        Some(batch)
    }
}

impl<J> StatementQueue<J> {
    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, flow: Flow, number: u64) -> Option<Queued<J>> {
        let mut guard = self.state();
        let state = &mut *guard;
        let Entry::Occupied(mut queued) = state.queued.entry(flow) else { return None };
        let index = queued.get().binary_search_by_key(&number, |queued| queued.number).ok()?;
        let removed = queued.get_mut().remove(index);
        if queued.get().is_empty() {
            queued.remove();
            state.turns.retain(|waiting| *waiting != flow);
        }
        removed
    }
}

/// The place of a statement in the queue, which it leaves when this is dropped.
struct Place<'a, J> {
    queue: &'a StatementQueue<J>,
    flow: Flow,
    number: u64,
}

impl<J> Place<'_, J> {
    /// Whether the statement still waited. It has not been run then, and never will be.
    fn leave(&self) -> bool {
        self.queue.remove(self.flow, self.number).is_some()
    }
}

impl<J> Drop for Place<'_, J> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
