//! The connection to one browser, and its sessions: commands to one attached target, and its events.

use std::{
    io,
    marker::PhantomData,
    sync::{Arc, atomic::Ordering},
};

use chromiumoxide_cdp::cdp::browser_protocol::{browser::BrowserContextId, target::SessionId};
use chromiumoxide_types::Command;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    BrowserPipes, Call, CdpError, Event,
    event::{EventReceiver, event_queue},
    message, pipe,
    pipe::{Route, Shared, WaitingCall},
};

/// A connection to one browser. Dropping it, and all sessions on it, closes the pipes; the browser then
/// exits.
#[derive(Debug)]
pub struct Connection {
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    pub(crate) shared: Arc<Shared>,
    closed: watch::Receiver<bool>,
}

impl Connection {
    /// Starts the two tasks that read and write the pipes, on the current Tokio runtime.
    ///
    /// # Errors
    /// When a descriptor is not a pipe, or outside of a Tokio runtime.
    pub fn open(pipes: BrowserPipes) -> io::Result<Self> {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (closing, closed) = watch::channel(false);
        let shared = Arc::<Shared>::default();
        pipe::spawn_writer(pipes.to_browser, queue)?;
        pipe::spawn_reader(pipes.from_browser, Arc::clone(&shared), closing)?;
        Ok(Self { outgoing, shared, closed })
    }

    /// Completes when the browser has closed its pipe.
    pub async fn closed(&self) {
        // An error means that the reader has ended, which is the same.
        let _ = self.closed.clone().wait_for(|closed| *closed).await;
    }

    /// Whether the browser has closed its pipe.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Sends a command to the browser itself and waits for its result.
    ///
    /// # Errors
    /// When the browser is gone or replies with an error.
    pub async fn call<C: Command>(&self, command: &C) -> Result<C::Response, CdpError> {
        self.start(None, command)?.await
    }

    /// Sends a command to the browser itself and discards the reply.
    ///
    /// # Errors
    /// When the browser is gone.
    pub fn send<C: Command>(&self, command: &C) -> Result<(), CdpError> {
        self.push(self.next_id(), None, command)
    }

    pub(crate) fn start<C: Command>(
        &self,
        session: Option<&SessionId>,
        command: &C,
    ) -> Result<Call<C::Response>, CdpError> {
        let (sender, reply) = oneshot::channel();
        let (id, method) = (self.next_id(), command.identifier().into_owned());
        {
            let mut routes = self.shared.routes();
            if routes.closed {
                return Err(CdpError::Closed);
            }
            let max_reply_bytes = message::max_reply_bytes(&method);
            routes.calls.insert(id, WaitingCall { reply: sender, max_reply_bytes });
        }
        let call = Call { id, method, reply, shared: Arc::clone(&self.shared), result: PhantomData };
        self.push(id, session, command)?;
        Ok(call)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.shared.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn push<C: Command>(
        &self,
        id: u64,
        session: Option<&SessionId>,
        command: &C,
    ) -> Result<(), CdpError> {
        let message = message::encode(id, session.map(AsRef::as_ref), command)
            .map_err(|source| CdpError::Encode { method: command.identifier().into_owned(), source })?;
        self.outgoing.send(message).map_err(|_| CdpError::Closed)
    }
}

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

    /// Reports the shared workers of a browser context from now on with the events of this page, as its other workers
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
