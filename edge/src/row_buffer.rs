//! Rows that wait to be written to the database.
//!
//! Invariant: a row leaves the buffer when it was written, or when it is reported as lost. A row that the database
//! refuses does not prevent others from being written, and they are written in batches again after it. An instance adds at
//! most [`MAX_REJECTED_ROWS`] rows of rejected requests for an account and minute.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use platen_shared::{id::AccountId, limits::MAX_REJECTED_ROWS};

/// Rows in the order in which they were added, of which at most one batch is written at a time.
#[derive(Debug)]
pub struct RowBuffer<T> {
    rows: VecDeque<(Instant, T)>,
    max_rows: usize,
    max_batch_rows: usize,
    /// Less than `max_batch_rows` while a row is searched that the database refuses.
    batch_rows: usize,
    is_flushing: bool,
}

impl<T> RowBuffer<T> {
    /// A buffer of at most this many rows, of which one statement writes at most `max_batch_rows`.
    #[must_use]
    pub const fn new(max_rows: usize, max_batch_rows: usize) -> Self {
        Self {
            rows: VecDeque::new(),
            max_rows,
            max_batch_rows,
            batch_rows: max_batch_rows,
            is_flushing: false,
        }
    }

    /// Adds a row. Returns it if the buffer is full, by which it is lost.
    #[must_use]
    pub fn push(&mut self, row: T, now: Instant) -> Option<T> {
        if self.rows.len() >= self.max_rows {
            return Some(row);
        }
        self.rows.push_back((now, row));
        None
    }

    /// Whether a row is in the buffer.
    pub fn contains(&self, is_row: impl Fn(&T) -> bool) -> bool {
        self.rows.iter().any(|(_, row)| is_row(row))
    }

    /// Begins to write; `false` if the buffer is being written, which includes rows that are added meanwhile.
    #[must_use]
    pub fn begin_flush(&mut self) -> bool {
        !std::mem::replace(&mut self.is_flushing, true)
    }

    /// Ends what [`begin_flush`](Self::begin_flush) began.
    pub fn end_flush(&mut self) {
        self.is_flushing = false;
    }

    /// The oldest rows, for one statement. They stay in the buffer.
    #[must_use]
    pub fn batch(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.rows.iter().take(self.batch_rows).map(|(_, row)| row.clone()).collect()
    }

    /// Removes a batch of this many rows, which was written.
    pub fn written(&mut self, count: usize) {
        self.remove(count);
        self.batch_rows = (self.batch_rows * 2).min(self.max_batch_rows);
    }

    /// Makes the next batch smaller than one of this many rows, which the database refused because of one of them.
    /// Removes and returns a row that was refused by itself.
    pub fn refused(&mut self, count: usize) -> Option<T> {
        if count > 1 {
            self.batch_rows = count / 2;
            return None;
        }
        self.batch_rows = self.max_batch_rows;
        self.remove(count).pop()
    }

    fn remove(&mut self, count: usize) -> Vec<T> {
        self.rows.drain(..count.min(self.rows.len())).map(|(_, row)| row).collect()
    }

    /// Removes the rows that were added longer than `max_age` ago.
    pub fn remove_older_than(&mut self, max_age: Duration, now: Instant) -> Vec<T> {
        let is_old = |(added, _): &&(Instant, T)| now.saturating_duration_since(*added) > max_age;
        self.remove(self.rows.iter().take_while(is_old).count())
    }
}

/// Counts the rows of requests that are refused before an attempt is recorded. Such a request costs no quota, so a client can
/// repeat it without end. A trigger of the schema applies the same limit to the rows of all instances.
#[derive(Debug, Default)]
pub struct RejectedRows {
    /// Minutes since 1970.
    minute: u64,
    rows: HashMap<AccountId, u32>,
}

impl RejectedRows {
    /// Counts a row of an account at a time in whole seconds since 1970; `false` if it is over the limit.
    pub fn accept(&mut self, account: &AccountId, at: u64) -> bool {
        if self.minute != at / 60 {
            self.minute = at / 60;
            self.rows.clear();
        }
        let rows = self.rows.entry(account.clone()).or_default();
        *rows += 1;
        *rows <= MAX_REJECTED_ROWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_until_they_are_written() {
        let now = Instant::now();
        let mut buffer = RowBuffer::new(3, 2);
        for row in 1..=3 {
            assert_eq!(buffer.push(row, now), None);
        }
        assert_eq!(buffer.push(4, now), Some(4));
        assert_eq!(buffer.batch(), [1, 2]);
        assert!(buffer.contains(|row| *row == 1));
        buffer.written(2);
        assert!(!buffer.contains(|row| *row == 1));
        assert_eq!(buffer.push(5, now), None);
        assert_eq!(buffer.batch(), [3, 5]);
        buffer.written(2);
        assert!(buffer.batch().is_empty());
    }

    /// Writes all rows as a flush does; the rows of each statement, and those that were lost.
    fn flush(
        buffer: &mut RowBuffer<usize>,
        mut is_refused: impl FnMut(&[usize]) -> bool,
    ) -> (Vec<usize>, Vec<usize>) {
        let (mut statements, mut lost) = (Vec::new(), Vec::new());
        loop {
            let batch = buffer.batch();
            if batch.is_empty() {
                return (statements, lost);
            }
            statements.push(batch.len());
            if is_refused(&batch) {
                lost.extend(buffer.refused(batch.len()));
            } else {
                buffer.written(batch.len());
            }
        }
    }

    #[test]
    fn a_refused_row_costs_only_itself_and_few_statements() {
        for bad in [&[][..], &[0], &[199], &[150], &[999], &[3, 4, 5], &[10, 500, 777]] {
            let mut buffer = RowBuffer::new(1_000, 200);
            for row in 0..1_000 {
                assert_eq!(buffer.push(row, Instant::now()), None);
            }
            let (statements, lost) = flush(&mut buffer, |batch| batch.iter().any(|row| bad.contains(row)));
            assert_eq!(lost, bad);
            assert!(statements.len() <= 5 + 20 * bad.len(), "{bad:?}: {statements:?}");
        }
    }

    #[test]
    fn batches_have_all_rows_again_after_an_error() {
        let mut buffer = RowBuffer::new(10_000, 200);
        for row in 0..10_000 {
            assert_eq!(buffer.push(row, Instant::now()), None);
        }
        // Of one row, and one of a statement for no reason of its rows.
        let mut errors = 0;
        let (statements, lost) = flush(&mut buffer, |batch| {
            let is_refused = batch.contains(&77) || (batch[0] > 3_000 && errors < 2);
            errors += usize::from(is_refused && batch[0] > 3_000);
            is_refused
        });
        assert_eq!(lost, [77]);
        assert!(statements.len() < 80, "{statements:?}");
        assert!(statements[statements.len() - 20..statements.len() - 1].iter().all(|rows| *rows == 200));
    }

    #[test]
    fn old_rows_are_removed() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut buffer = RowBuffer::new(9, 9);
        for row in 0..4 {
            assert_eq!(buffer.push(row, now + row * second), None);
        }
        assert_eq!(buffer.remove_older_than(3 * second, now + 5 * second), [0, 1]);
        assert_eq!(buffer.batch(), [2, 3]);
    }

    #[test]
    fn each_account_has_a_limit_for_each_minute() {
        let mut rows = RejectedRows::default();
        let [one, other] = ["one", "other"].map(AccountId::from_text);
        let accepted =
            |rows: &mut RejectedRows, account, at| (0..100).filter(|_| rows.accept(account, at)).count();
        assert_eq!(accepted(&mut rows, &one, 120), 30);
        assert_eq!(accepted(&mut rows, &one, 179), 0);
        assert_eq!(accepted(&mut rows, &other, 179), 30);
        assert_eq!(accepted(&mut rows, &one, 180), 30);
    }
}
