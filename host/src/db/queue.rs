//! Statements that wait for their turn.
//!
//! Batches begin one after the other: the next one when the last has ended, or has been on its way for longer than its
//! statements take.
//!
//! Invariant: flows are served round robin, and the statements of one flow in order. A statement waits at most
//! [`TURN_TIMEOUT`]; one whose caller has gone away before its turn is not run, and one that runs is finished
//! without its caller.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use platen_program::{FairQueue, Ticket};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use super::{DbError, FlowId, Row, Value};

/// How long a statement waits for its turn, and then for another process that writes: shorter than the deadline of a render,
/// so that a claim that was not run is refused in time. A batch that takes longer no longer delays those after it, because
/// its connection may be broken.
pub(super) const TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// Bounds the memory: several statements of each request that the server handles at once.
const MAX_QUEUED: usize = 4096;

/// A statement in the queue.
pub(super) struct Queued {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value>,
    /// The caller, which may have gone away.
    pub(super) reply: oneshot::Sender<Result<Vec<Row>, DbError>>,
}

pub(super) struct StatementQueue {
    state: Mutex<State>,
    max_concurrent_batches: usize,
    max_batch: usize,
    /// The time for which each statement of a batch delays the next batch.
    statement_time: Duration,
    /// The right to begin a batch.
    turn: tokio::sync::Mutex<()>,
    start: Box<dyn Fn(Vec<Queued>) -> JoinHandle<()> + Send + Sync>,
}

struct State {
    queued: FairQueue<FlowId, Queued>,
    /// Tasks that take batches from the queue.
    runners: usize,
}

impl StatementQueue {
    /// `start` gets at most `max_batch` statements and is called for at most `max_concurrent_batches` at once, besides those
    /// that stall. A batch begins when the one before has ended or is as old as `statement_time` for each of its statements.
    pub(super) fn new(
        max_concurrent_batches: usize,
        max_batch: usize,
        statement_time: Duration,
        start: impl Fn(Vec<Queued>) -> JoinHandle<()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { queued: FairQueue::new(MAX_QUEUED), runners: 0 }),
            max_concurrent_batches,
            max_batch,
            statement_time,
            turn: tokio::sync::Mutex::default(),
            start: Box::new(start),
        })
    }

    /// The rows of a statement. Dropping the future removes the statement if it still waits.
    pub(super) async fn run(
        self: &Arc<Self>,
        flow: FlowId,
        sql: String,
        parameters: Vec<Value>,
    ) -> Result<Vec<Row>, DbError> {
        let (reply, mut result) = oneshot::channel();
        let position = Position { queue: self, ticket: self.push(flow, Queued { sql, parameters, reply })? };
        let waited = timeout(TURN_TIMEOUT, &mut result).await;
        if waited.is_err() && position.leave() {
            return Err(DbError::Busy);
        }
        let result = match waited {
            Ok(result) => result,
            Err(_) => result.await,
        };
        result.map_err(|_| DbError::Panicked)?
    }

    fn push(self: &Arc<Self>, flow: FlowId, queued: Queued) -> Result<Ticket, DbError> {
        let mut state = self.state.lock();
        let (ticket, evicted) = state.queued.join(&flow, queued).map_err(|_| DbError::Busy)?;
        if let Some((_, evicted)) = evicted {
            let _ = evicted.reply.send(Err(DbError::Busy));
        }
        if state.runners < self.max_concurrent_batches {
            state.runners += 1;
            tokio::spawn(Arc::clone(self).run_batches());
        }
        Ok(ticket)
    }

    async fn run_batches(self: Arc<Self>) {
        loop {
            let turn = self.turn.lock().await;
            let Some(batch) = self.next_batch() else { return };
            let time = self.statement_time * u32::try_from(batch.len()).unwrap_or(u32::MAX);
            let mut batch = (self.start)(batch);
            let has_ended = timeout(time, &mut batch).await.is_ok();
            drop(turn);
            if !has_ended {
                let _ = timeout(TURN_TIMEOUT, batch).await;
            }
        }
    }

    /// The next statements, one of each flow in turn. Without any the runner ends.
    fn next_batch(&self) -> Option<Vec<Queued>> {
        let mut state = self.state.lock();
        let queued = std::iter::from_fn(|| state.queued.pop(|_, _| true));
        let batch: Vec<_> = queued.take(self.max_batch).map(|(_, queued)| queued).collect();
        if batch.is_empty() {
            state.runners -= 1;
            return None;
        }
        Some(batch)
    }
}

/// The position of a statement in the queue, which it leaves when this is dropped.
struct Position<'a> {
    queue: &'a StatementQueue,
    ticket: Ticket,
}

impl Position<'_> {
    /// Whether the statement still waited. It has not been run then, and never will be.
    fn leave(&self) -> bool {
        self.queue.state.lock().queued.remove(self.ticket).is_some()
    }
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
