//! The connection to one browser: sends commands and routes replies and events to their receivers.

use std::{
    io,
    marker::PhantomData,
    sync::{Arc, atomic::Ordering},
};

use chromiumoxide_cdp::cdp::browser_protocol::target::SessionId;
use chromiumoxide_types::Command;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    BrowserPipes, Call, CdpError, message, pipe,
    routes::{Shared, WaitingCall},
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
