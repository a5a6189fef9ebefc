//! The rows of attempts, which also refund them. They are written in batches: while one statement runs, further rows
//! are collected, and the next statement writes them.
//!
//! Invariant: a row that is added is written, or reported as lost; those of rejected requests are limited. The task that
//! writes ends when no row is left, so the instance exists until then.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use platen_spin::{
    database::{Database, DatabaseError},
    platform,
};
use platen_statements::attempts::{self, Attempt};
use spin_sdk::time::sleep;

use super::log;
use crate::row_buffer::{RejectedRows, RowBuffer};

/// Rows of an instance that wait for the database. A row has about 500 bytes.
const MAX_ROWS: usize = 1_000;
/// Rows of one statement, which holds the database's write lock for some milliseconds.
const MAX_BATCH_ROWS: usize = 200;
/// How long a row is kept while the database is busy or absent.
const MAX_ROW_AGE: Duration = Duration::from_mins(5);
/// The time after which a statement without a result is sent again.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before the rows are sent again, with those that came meanwhile.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// The pause before the first look for a written row; each further one is later by as much.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

thread_local! {
    static ROWS: RefCell<RowBuffer<Attempt>> = const { RefCell::new(RowBuffer::new(MAX_ROWS, MAX_BATCH_ROWS)) };
    static REJECTED: RefCell<RejectedRows> = RefCell::default();
}

/// Adds a row, which the next [`flush`] writes.
pub(super) fn add(attempt: Attempt) {
    let is_accepted =
        || REJECTED.with_borrow_mut(|rejected| rejected.accept(&attempt.account_id, attempt.at));
    if attempt.rejected && !is_accepted() {
        return;
    }
    if let Some(attempt) = ROWS.with_borrow_mut(|rows| rows.push(attempt, Instant::now())) {
        log::attempts_lost(&[attempt], "too many attempts wait for the database");
    }
}

/// Waits until a row has been written or is lost, at most for this time.
pub(super) async fn until_written(id: i64, timeout: Duration) {
    let (until, mut interval) = (Instant::now() + timeout, POLL_INTERVAL);
    while ROWS.with_borrow(|rows| rows.contains(|row| row.id == id)) {
        // A task of a component cannot wake one of another request, so this one looks again.
        let time_left = until.saturating_duration_since(Instant::now());
        if time_left.is_zero() {
            return;
        }
        sleep(interval.min(time_left)).await;
        interval += POLL_INTERVAL;
    }
}

/// Writes all rows, unless another request's task is doing so.
pub(super) async fn flush() {
    let Some(_flush) = Flush::begin() else { return };
    loop {
        let batch = ROWS.with_borrow(RowBuffer::batch);
        if batch.is_empty() {
            return;
        }
        match platform::timeout(STATEMENT_TIMEOUT, attempts::log(&Database, &batch)).await {
            Some(Ok(())) => ROWS.with_borrow_mut(|rows| rows.written(batch.len())),
            None | Some(Err(DatabaseError::Unavailable(..))) => {
                let lost = ROWS.with_borrow_mut(|rows| rows.remove_older_than(MAX_ROW_AGE, Instant::now()));
                log::attempts_lost(&lost, "the database was not available");
                sleep(RETRY_INTERVAL).await;
            }
            Some(Err(cause)) => {
                if let Some(lost) = ROWS.with_borrow_mut(|rows| rows.refused(batch.len())) {
                    log::attempts_lost(&[lost], &cause.to_string());
                }
            }
        }
    }
}

/// The right to write the rows.
struct Flush;

impl Flush {
    fn begin() -> Option<Self> {
        // Not `then_some`, whose argument would end the other flush when it is dropped.
        ROWS.with_borrow_mut(RowBuffer::begin_flush).then(|| Self)
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        ROWS.with_borrow_mut(RowBuffer::end_flush);
    }
}
