//! How far a job has come, for what is said about it when it has ended or its future was dropped.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use platen_program::telemetry::Context;

use crate::phases::Phases;

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

/// The progress of one job.
#[derive(Debug, Default)]
pub(crate) struct JobProgress {
    /// Whether its page has started to run.
    pub(crate) page: PageStarted,
    /// The phases of the job so far.
    pub(crate) phases: Phases,
    queued: OnceLock<Duration>,
    admitted: OnceLock<Instant>,
}

impl JobProgress {
    /// That of a job with this span.
    pub(crate) fn of(trace: Option<Context>) -> Self {
        Self { phases: Phases::of(trace), ..Self::default() }
    }

    /// The job has its slot, for which it has waited this long.
    pub(crate) fn set_admitted(&self, queued: Duration) {
        self.set_queued(queued);
        let _ = self.admitted.set(Instant::now());
    }

    /// The job has waited this long for a slot, with or without success.
    pub(crate) fn set_queued(&self, queued: Duration) {
        let _ = self.queued.set(queued);
    }

    /// How long the job waited for its slot; `None` while it waits.
    pub(crate) fn queued(&self) -> Option<Duration> {
        self.queued.get().copied()
    }

    /// For how long the job has had its slot; `None` if it had none.
    pub(crate) fn running(&self) -> Option<Duration> {
        self.admitted.get().map(Instant::elapsed)
    }
}
