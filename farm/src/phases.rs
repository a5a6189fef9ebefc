//! The phases of a job, and when each began and ended.
//!
//! Invariant: a phase that was entered is recorded when it ends, also when the future of the job is dropped.

use parking_lot::Mutex;
use strum::{EnumIter, IntoStaticStr};
use tokio::time::Instant;

/// A phase of a job. A job that is tried again has some phases more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Phase {
    /// The job waits for a slot.
    Queue,
    /// It waits for a browser and a page.
    Lease,
    /// The page is prepared and loads.
    Load,
    /// It is waited for until nothing changes, or for the time that the job asks for.
    Settle,
    /// The file is made.
    Capture,
}

/// One phase of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhaseTime {
    pub(crate) phase: Phase,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

/// The phases of one job so far, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Phases(Mutex<Vec<PhaseTime>>);

impl Phases {
    /// Begins a phase, which ends when the guard is dropped.
    pub(crate) fn enter(&self, phase: Phase) -> PhaseGuard<'_> {
        PhaseGuard { phases: self, phase, began: Instant::now() }
    }

    pub(crate) fn record(&self, phase: Phase, began: Instant, ended: Instant) {
        self.0.lock().push(PhaseTime { phase, began, ended });
    }

    pub(crate) fn times(&self) -> Vec<PhaseTime> {
        self.0.lock().clone()
    }
}

/// A phase that has not ended.
#[derive(Debug)]
pub(crate) struct PhaseGuard<'a> {
    phases: &'a Phases,
    phase: Phase,
    began: Instant,
}

impl<'a> PhaseGuard<'a> {
    /// Ends the phase, and returns the phases of its job.
    pub(crate) fn end(self) -> &'a Phases {
        self.phases
    }
}

impl Drop for PhaseGuard<'_> {
    fn drop(&mut self) {
        self.phases.record(self.phase, self.began, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_recorded_when_it_ends() {
        let phases = Phases::default();
        let lease = phases.enter(Phase::Lease);
        assert!(phases.times().is_empty());
        drop(lease);
        let times = phases.times();
        assert!(times.len() == 1 && times[0].phase == Phase::Lease && times[0].began <= times[0].ended);
    }
}
