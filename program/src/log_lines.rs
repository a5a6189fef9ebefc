//! The text of an error in the log, and the limit of the lines of an event that repeats as long as its cause lasts.

use std::{error::Error, iter, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_secs(10);

/// An error and its causes, for the log, whose JSON format drops the causes of a field that is an error.
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let errors = iter::successors(Some(error), |&error| error.source());
    errors.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Counts an event, and says when to log it: at most once in 10 seconds.
#[derive(Debug)]
pub struct RepeatedWarning(Mutex<State>);

#[derive(Debug)]
struct State {
    logged: Option<Instant>,
    count: u64,
}

impl RepeatedWarning {
    /// An event that has not occurred yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(State { logged: None, count: 0 }))
    }

    /// Counts the event. The number since the last log line, if it is time for one.
    pub fn record(&self) -> Option<u64> {
        let mut state = self.0.lock();
        state.count += 1;
        if state.logged.is_some_and(|logged| logged.elapsed() < INTERVAL) {
            return None;
        }
        state.logged = Some(Instant::now());
        Some(std::mem::take(&mut state.count))
    }
}

impl Default for RepeatedWarning {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_event_is_logged_at_most_once_in_an_interval() {
        let warning = RepeatedWarning::new();
        assert_eq!([warning.record(), warning.record(), warning.record()], [Some(1), None, None]);
        tokio::time::advance(INTERVAL).await;
        assert_eq!([warning.record(), warning.record()], [Some(3), None]);
    }
}
