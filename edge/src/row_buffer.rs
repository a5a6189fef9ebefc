//! Rows that wait to be written to the database.
//!
//! Invariant: a row leaves the buffer when it was written, or when it is reported as lost.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Rows in the order in which they were added, of which at most one batch is written at a time.
#[derive(Debug)]
pub struct RowBuffer<T> {
    rows: VecDeque<(Instant, T)>,
    max_rows: usize,
    is_flushing: bool,
}

impl<T> RowBuffer<T> {
    /// A buffer of at most this many rows.
    #[must_use]
    pub const fn new(max_rows: usize) -> Self {
        Self { rows: VecDeque::new(), max_rows, is_flushing: false }
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

    /// How many rows of a kind are in the buffer.
    #[must_use]
    pub fn count(&self, is_row: impl Fn(&T) -> bool) -> usize {
        self.rows.iter().filter(|(_, row)| is_row(row)).count()
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

    /// The oldest rows, at most `max`. They stay in the buffer.
    #[must_use]
    pub fn batch(&self, max: usize) -> Vec<T>
    where
        T: Clone,
    {
        self.rows.iter().take(max).map(|(_, row)| row.clone()).collect()
    }

    /// Removes the oldest rows, as many as a batch had.
    pub fn remove(&mut self, count: usize) -> Vec<T> {
        self.rows.drain(..count.min(self.rows.len())).map(|(_, row)| row).collect()
    }

    /// Removes the rows that were added longer than `max_age` ago.
    pub fn remove_older_than(&mut self, max_age: Duration, now: Instant) -> Vec<T> {
        let is_old = |(added, _): &&(Instant, T)| now.saturating_duration_since(*added) > max_age;
        self.remove(self.rows.iter().take_while(is_old).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rows_stay_until_they_are_removed() {
        let now = Instant::now();
        let mut buffer = RowBuffer::new(3);
        for row in 1..=3 {
            assert_eq!(buffer.push(row, now), None);
        }
        assert_eq!(buffer.push(4, now), Some(4));
        assert_eq!(buffer.batch(2), [1, 2]);
        assert!(buffer.contains(|row| *row == 1));
        assert_eq!(buffer.count(|row| *row > 1), 2);
        assert_eq!(buffer.remove(2), [1, 2]);
        assert!(!buffer.contains(|row| *row == 1));
        assert_eq!(buffer.push(5, now), None);
        assert_eq!(buffer.batch(9), [3, 5]);
        assert_eq!(buffer.remove(9), [3, 5]);
        assert!(buffer.batch(9).is_empty());
    }

    #[test]
    fn one_flush_runs_at_a_time() {
        let mut buffer = RowBuffer::<u8>::new(1);
        assert!(buffer.begin_flush() && !buffer.begin_flush());
        buffer.end_flush();
        assert!(buffer.begin_flush());
    }

    #[test]
    fn old_rows_are_removed() {
        let now = Instant::now();
        let mut buffer = RowBuffer::new(9);
        for row in 0..4 {
            assert_eq!(buffer.push(row, now + row * SECOND), None);
        }
        assert_eq!(buffer.remove_older_than(3 * SECOND, now + 5 * SECOND), [0, 1]);
        assert_eq!(buffer.batch(9), [2, 3]);
    }
}
