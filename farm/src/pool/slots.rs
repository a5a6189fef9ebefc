//! The slots of the pool, each with its browser, and waiting for a change of them.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::pooled_browser::PooledBrowser;
use crate::error::LaunchError;

/// The slots: first those that always have a browser, then those whose browser is started on demand.
#[derive(Debug)]
pub(super) struct Slots {
    inner: Mutex<Vec<BrowserSlot>>,
    /// Slots that always have a browser.
    permanent: usize,
    /// Sending on it notifies the tasks that wait for a change: of a slot, or the end of a lease.
    pub(super) changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
pub(super) struct BrowserSlot {
    pub(super) pooled: Option<Arc<PooledBrowser>>,
    /// Error of the latest start.
    pub(super) failure: Option<LaunchError>,
}

impl BrowserSlot {
    /// The browser, unless it has been killed or has exited.
    pub(super) fn usable(&self) -> Option<&Arc<PooledBrowser>> {
        self.pooled.as_ref().filter(|pooled| pooled.is_usable())
    }

    /// The browser, if a job can lease it now.
    pub(super) fn free(&self) -> Option<&Arc<PooledBrowser>> {
        self.usable().filter(|pooled| !pooled.is_leased())
    }
}

impl Slots {
    /// `permanent` slots that always have a browser, and as many whose browser is started on demand.
    pub(super) fn new(permanent: usize) -> Self {
        Self {
            inner: Mutex::new((0..2 * permanent).map(|_| BrowserSlot::default()).collect()),
            permanent,
            changes: watch::Sender::new(()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<BrowserSlot>> {
        self.inner.lock()
    }

    /// Changes a slot and notifies the tasks that wait for a change.
    pub(super) fn change(&self, slot: usize, change: impl FnOnce(&mut BrowserSlot)) {
        change(&mut self.lock()[slot]);
        self.changes.send_replace(());
    }

    /// Browsers that can take jobs, of those that always run.
    pub(super) fn ready(&self) -> usize {
        self.lock()[..self.permanent].iter().filter(|slot| slot.usable().is_some()).count()
    }

    /// Waits until `find` returns a value; `None` if no browser runs and the latest start of all permanent
    /// ones has failed.
    pub(super) async fn wait_for<T>(&self, find: impl Fn(&[BrowserSlot]) -> Option<T>) -> Option<T> {
        let mut changed = self.changes.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let slots = self.lock();
                if let Some(found) = find(&slots) {
                    return Some(found);
                }
                let none_runs = slots.iter().all(|slot| slot.usable().is_none());
                if none_runs && slots[..self.permanent].iter().all(|slot| slot.failure.is_some()) {
                    return None;
                }
            }
            if changed.changed().await.is_err() {
                return None;
            }
        }
    }
}
