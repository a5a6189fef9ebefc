//! How far a job has come, for what is said about it when it has ended or its future was dropped, and the time of each of
//! its phases.
//!
//! Invariant: a phase that was entered is recorded when it ends, also when the future of the job is dropped.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use platen_program::telemetry::{self, Context};
use strum::{EnumIter, IntoStaticStr};
use tokio::time::Instant;
use tracing::{Span, info_span};

/// A shared flag: whether a job's page has started to run.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageStarted(Arc<AtomicBool>);

impl PageStarted {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct JobProgress {
    /// The job's name in the log.
    pub(crate) name: String,
    pub(crate) page: PageStarted,
    pub(crate) phases: Phases,
    admitted: OnceLock<Instant>,
}

impl JobProgress {
    pub(crate) fn of(name: String, trace: Option<Context>) -> Self {
        Self { name, phases: Phases { trace, ..Phases::default() }, ..Self::default() }
    }

    /// The job has its slot.
    pub(crate) fn set_admitted(&self) {
        let _ = self.admitted.set(Instant::now());
    }

    /// How long the job has waited for its slot, with or without success; `None` while it waits.
    pub(crate) fn queued(&self) -> Option<Duration> {
        self.phases.times().iter().find_map(|(phase, time)| (*phase == Phase::Queue).then_some(*time))
    }

    /// The time for which the job has had its slot; `None` if it had none.
    pub(crate) fn running(&self) -> Option<Duration> {
        self.admitted.get().map(Instant::elapsed)
    }
}

/// A phase of a job. A job that is tried again has some phases more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Phase {
    /// The job waits for a slot.
    Queue,
    /// It waits for a browser and a page.
    Lease,
    /// Its template in Jinja is filled.
    Fill,
    /// The page is prepared and loads.
    Load,
    /// It is waited for until nothing changes, or for the time that the job asks for.
    Settle,
    /// The file is made.
    Capture,
}

/// The phases of one job so far, and the time of each, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    times: Mutex<Vec<(Phase, Duration)>>,
    trace: Option<Context>,
}

impl Phases {
    /// Begins a phase, which ends when the guard is dropped.
    pub(crate) fn enter(&self, phase: Phase) -> PhaseGuard<'_> {
        let span = self.trace.as_ref().map(|trace| {
            let name: &str = phase.into();
            telemetry::part_of(trace, info_span!(target: telemetry::TARGET, "phase", otel.name = name))
        });
        PhaseGuard { phases: self, phase, began: Instant::now(), _span: span }
    }

    pub(crate) fn times(&self) -> Vec<(Phase, Duration)> {
        self.times.lock().clone()
    }
}

#[derive(Debug)]
pub(crate) struct PhaseGuard<'a> {
    phases: &'a Phases,
    phase: Phase,
    began: Instant,
    _span: Option<Span>,
}

impl Drop for PhaseGuard<'_> {
    fn drop(&mut self) {
        self.phases.times.lock().push((self.phase, self.began.elapsed()));
    }
}
