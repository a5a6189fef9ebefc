//! What is known of an outage of the database, so that not every caller waits for its end.
//!
//! Invariant: a statement is refused without a try only if no statement has been answered for [`RETRY_TIME`], in which
//! several failed or one did not end, and if that was so less than [`Outage::CHECK_TIME`] ago. Each answer ends it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::retry::{Outcome, RETRY_TIME};

/// The tries of a process or of an instance.
#[derive(Debug, Default)]
pub struct Outage(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answered: Option<Instant>,
    /// When the first try began that failed since the last answer, and when the last one failed.
    failed: Option<(Instant, Instant)>,
    /// When a caller was last asked to check the database.
    checked: Option<Instant>,
}

/// What becomes of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent.
    Send,
    /// It is refused without a try.
    Refuse,
    /// It is refused, and [`Outage::CHECK`] is sent, for which the caller does not wait.
    RefuseAndCheck,
}

impl Outage {
    /// The time for which a failure is known.
    pub const CHECK_TIME: Duration = Duration::from_secs(1);
    /// How often a failure is recorded of a try that is not answered: several times while one is known, because timers may be late.
    pub const RECORD_INTERVAL: Duration = Duration::from_millis(200);
    /// A statement that reads the database.
    pub const CHECK: &str = "SELECT 1 FROM sqlite_schema LIMIT 1";

    /// An outage of which nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(State { answered: None, failed: None, checked: None }))
    }

    /// What becomes of a statement now.
    #[must_use]
    pub fn judge(&self, now: Instant) -> Verdict {
        let is_recent = |time| now.saturating_duration_since(time) < Self::CHECK_TIME;
        self.with(|state| match state.failed {
            Some((first, last)) if last.saturating_duration_since(first) >= RETRY_TIME && is_recent(last) => {
                if state.checked.is_some_and(is_recent) {
                    return Verdict::Refuse;
                }
                state.checked = Some(now);
                Verdict::RefuseAndCheck
            }
            _ => Verdict::Send,
        })
    }

    /// Records what a try says about the database; `None` is a success.
    pub fn record(&self, began: Instant, outcome: Option<Outcome>, now: Instant) {
        match outcome {
            Some(Outcome::Away | Outcome::Unknown) => self.failed(began, now),
            // Others may have kept the statement from being sent.
            Some(Outcome::NotRun) => {}
            // The database has answered.
            None | Some(Outcome::Unable | Outcome::Failed) => self.with(|state| {
                state.answered = Some(now);
                state.failed = None;
            }),
        }
    }

    /// Records that a try has failed, or that it has not been answered for longer than a healthy database takes.
    pub fn failed(&self, began: Instant, now: Instant) {
        self.with(|state| {
            // Of a try that began before another one was answered, only that one was lost.
            if state.answered.is_some_and(|answered| answered >= began) {
                return;
            }
            let first = match state.failed {
                Some((first, last)) if now.saturating_duration_since(last) <= RETRY_TIME => first.min(began),
                _ => began,
            };
            state.failed = Some((first, now));
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Tries of a database that is away, of `start` to `end` in seconds.
    fn failing(outage: &Outage, begin: Instant, seconds: std::ops::RangeInclusive<u32>) {
        for second in seconds {
            let now = begin + second * SECOND;
            outage.record(now, Some(Outcome::Away), now);
        }
    }

    #[test]
    fn an_outage_is_known_for_a_second_after_each_failure() {
        let (outage, begin) = (Outage::new(), Instant::now());
        failing(&outage, begin, 0..=9);
        assert_eq!(outage.judge(begin + 9 * SECOND), Verdict::Send, "a restart is waited for");
        failing(&outage, begin, 10..=10);
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        assert_eq!(outage.judge(at(10_001)), Verdict::RefuseAndCheck);
        assert!((10_002..11_000).step_by(100).all(|time| outage.judge(at(time)) == Verdict::Refuse));
        for _ in 0..2 {
            assert_eq!(outage.judge(at(11_000)), Verdict::Send, "the failure is known no longer");
        }
        outage.record(at(11_000), Some(Outcome::Unknown), at(11_001));
        assert_eq!(outage.judge(at(11_000)), Verdict::Refuse);
        assert_eq!(outage.judge(at(11_002)), Verdict::RefuseAndCheck);
        assert_eq!(outage.judge(at(11_003)), Verdict::Refuse);
    }

    #[test]
    fn an_answer_ends_it() {
        for answer in [None, Some(Outcome::Failed), Some(Outcome::Unable)] {
            let (outage, begin) = (Outage::new(), Instant::now());
            failing(&outage, begin, 0..=20);
            let now = begin + 20 * SECOND;
            assert_eq!(outage.judge(now), Verdict::RefuseAndCheck);
            outage.record(now, answer, now);
            assert_eq!(outage.judge(now), Verdict::Send, "{answer:?}");
            // Of a try that began before.
            outage.failed(begin, now);
            failing(&outage, begin, 21..=30);
            assert_eq!(outage.judge(begin + 30 * SECOND), Verdict::Send, "{answer:?}");
        }
    }

    #[test]
    fn a_busy_database_is_no_outage() {
        let (outage, begin) = (Outage::new(), Instant::now());
        for second in 0..=60 {
            let now = begin + second * SECOND;
            outage.record(now, Some(Outcome::NotRun), now);
            assert_eq!(outage.judge(now), Verdict::Send);
        }
    }

    #[test]
    fn failures_far_apart_are_no_outage() {
        let (outage, begin) = (Outage::new(), Instant::now());
        for second in [0, 11, 22, 33] {
            failing(&outage, begin, second..=second);
            assert_eq!(outage.judge(begin + second * SECOND), Verdict::Send);
        }
    }

    #[test]
    fn a_silent_database_is_known() {
        let (outage, begin) = (Outage::new(), Instant::now());
        for second in 5..=9 {
            outage.failed(begin, begin + second * SECOND);
            assert_eq!(outage.judge(begin + second * SECOND), Verdict::Send);
        }
        for second in 10..=40 {
            let now = begin + second * SECOND;
            outage.failed(begin, now);
            assert_eq!(outage.judge(now), Verdict::RefuseAndCheck);
            assert_eq!(outage.judge(now), Verdict::Refuse);
        }
    }
}
