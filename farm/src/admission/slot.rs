//! The right to render one job.

use super::Admission;

/// The right to render one job; released when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    admission: Admission,
    id: u64,
}

impl Slot {
    pub(super) fn new(admission: Admission, id: u64) -> Self {
        Self { admission, id }
    }

    /// Marks the job as long, so that another job may get a slot in addition.
    pub(crate) fn mark_long(&self) {
        let mut state = self.admission.state();
        state.jobs.mark_long(self.id);
        self.admission.dispatch(&mut state);
    }

    /// Marks the job as one that did not end by its deadline.
    pub(crate) fn mark_late(&self) {
        self.admission.state().jobs.mark_late(self.id);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        self.admission.release(&mut state, self.id);
    }
}
