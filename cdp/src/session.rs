//! Sessions: commands to one attached target, and its events.

use std::sync::Arc;

use chromiumoxide_cdp::cdp::browser_protocol::{browser::BrowserContextId, target::SessionId};
use chromiumoxide_types::Command;

use crate::{
    Call, CdpError, Connection, Event,
    event_queue::{EventReceiver, event_queue},
    routes::{Route, Shared},
};

/// A session with one attached target: a page, a frame in a process of its own, or a worker.
#[derive(Debug, Clone)]
pub struct Session {
    connection: Arc<Connection>,
    id: SessionId,
}

impl Session {
    /// The session `id` on `connection`, and its events from now on. Enable domains that send events after
    /// this call, not before.
    #[must_use]
    pub fn new(connection: Arc<Connection>, id: SessionId) -> (Self, Events) {
        let (sender, queue) = event_queue();
        let mut routes = connection.shared.routes();
        if !routes.closed {
            routes.sessions.insert(id.inner().clone(), Route::Page(sender));
        }
        drop(routes);
        let events = Events { queue, session: id.inner().clone(), shared: Arc::clone(&connection.shared) };
        (Self { connection, id }, events)
    }

    /// From now on the shared workers of a browser context are reported with the events of this page, as its other workers
    /// are: they are attached to the browser itself.
    pub fn receive_workers_of(&self, context: &BrowserContextId) {
        self.connection.shared.routes().contexts.insert(context.inner().clone(), self.id.inner().clone());
    }

    /// The session of a worker of this page. Its events are received with those of the page from now on.
    #[must_use]
    pub fn worker_session(&self, id: SessionId) -> Self {
        let route = Route::Worker { page: self.id.inner().clone() };
        self.connection.shared.routes().sessions.insert(id.inner().clone(), route);
        Self { connection: Arc::clone(&self.connection), id }
    }

    /// Sends a command and returns the call to wait for, so that several can be in progress.
    ///
    /// # Errors
    /// When the browser is gone.
    pub fn start<C: Command>(&self, command: &C) -> Result<Call<C::Response>, CdpError> {
        self.connection.start(Some(&self.id), command)
    }

    /// Sends a command and waits for its result.
    ///
    /// # Errors
    /// When the page or the browser is gone, or replies with an error.
    pub async fn call<C: Command>(&self, command: &C) -> Result<C::Response, CdpError> {
        self.start(command)?.await
    }

    /// Sends a command and discards the reply.
    ///
    /// # Errors
    /// When the browser is gone.
    pub fn send<C: Command>(&self, command: &C) -> Result<(), CdpError> {
        self.connection.push(self.connection.next_id(), Some(&self.id), command)
    }
}

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
