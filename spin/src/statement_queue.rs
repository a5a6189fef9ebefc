//! The statements of one instance that run or wait, in the order in which they came.
//!
//! Invariant: at most `places` statements that began less than 5 s ago run at once.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// A statement that has run for longer does not delay others, because its server may never answer.
pub const STALL_TIME: Duration = Duration::from_secs(5);

/// Statements by their numbers.
#[derive(Debug)]
pub struct StatementQueue {
    places: usize,
    next: u64,
    waiting: VecDeque<u64>,
    running: Vec<(u64, Instant)>,
}

impl StatementQueue {
    /// A queue of which at most this many run at once.
    #[must_use]
    pub const fn new(places: usize) -> Self {
        Self { places, next: 0, waiting: VecDeque::new(), running: Vec::new() }
    }

    /// Changes how many run at once.
    pub const fn set_places(&mut self, places: usize) {
        self.places = places;
    }

    /// The number of a statement that waits from now on.
    pub fn join(&mut self) -> u64 {
        self.next += 1;
        self.waiting.push_back(self.next);
        self.next
    }

    /// Begins a statement.
    ///
    /// # Errors
    /// The number of waiting statements before it.
    pub fn begin(&mut self, number: u64, now: Instant) -> Result<(), usize> {
        let began_lately = |began: &Instant| now.saturating_duration_since(*began) < STALL_TIME;
        let running = self.running.iter().filter(|(_, began)| began_lately(began)).count();
        let Some(position) = self.waiting.iter().position(|waiting| *waiting == number) else {
            return Ok(());
        };
        if running + position >= self.places {
            return Err(position);
        }
        self.waiting.remove(position);
        self.running.push((number, now));
        Ok(())
    }

    /// A statement has ended, or waits no longer.
    pub fn leave(&mut self, number: u64) {
        self.waiting.retain(|waiting| *waiting != number);
        self.running.retain(|(running, _)| *running != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_begin_in_their_order() {
        let (mut queue, now) = (StatementQueue::new(2), Instant::now());
        let [first, second, third, fourth] = std::array::from_fn(|_| queue.join());
        assert_eq!(queue.begin(third, now), Err(2));
        assert_eq!(queue.begin(second, now), Ok(()));
        assert_eq!(queue.begin(first, now), Ok(()));
        assert_eq!(queue.begin(third, now), Err(0));
        assert_eq!(queue.begin(fourth, now), Err(1));
        queue.leave(first);
        assert_eq!(queue.begin(fourth, now), Err(1));
        queue.leave(third);
        assert_eq!(queue.begin(fourth, now), Ok(()));
    }

    #[test]
    fn a_stalled_statement_gives_its_place_away() {
        let (mut queue, now) = (StatementQueue::new(1), Instant::now());
        let [first, second, third] = std::array::from_fn(|_| queue.join());
        assert_eq!(queue.begin(first, now), Ok(()));
        assert_eq!(queue.begin(second, now + STALL_TIME / 2), Err(0));
        assert_eq!(queue.begin(second, now + STALL_TIME), Ok(()));
        queue.leave(first);
        assert_eq!(queue.begin(third, now + STALL_TIME), Err(0));
    }
}
