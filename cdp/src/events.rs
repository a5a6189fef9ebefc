//! The events of a session.

use std::sync::Arc;

use crate::{
    Event,
    event_queue::EventReceiver,
    routes::{Route, Shared},
};

/// The events of one session and of its workers, in the order in which the browser sent them. Ends when
/// the page or the browser is gone, or when more have arrived than are kept.
#[derive(Debug)]
pub struct Events {
    pub(crate) queue: EventReceiver,
    pub(crate) session: String,
    pub(crate) shared: Arc<Shared>,
}

impl Events {
    /// Waits for the next event; `None` when the events have ended. Safe to cancel.
    pub async fn next(&mut self) -> Option<Event> {
        self.queue.recv().await
    }

    /// The next event that has been received already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.try_recv()
    }

    /// Whether the events have ended because more arrived than are kept.
    #[must_use]
    pub fn have_overflowed(&self) -> bool {
        self.queue.has_overflowed()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut routes = self.shared.routes();
        routes.sessions.remove(&self.session);
        routes.sessions.retain(|_, route| !matches!(route, Route::Worker { page } if *page == self.session));
        routes.contexts.retain(|_, session| *session != self.session);
    }
}
