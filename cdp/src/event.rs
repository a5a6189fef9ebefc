//! Events of a session.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use chromiumoxide_types::MethodType;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::mpsc;

use crate::{CdpError, connection::Shared};

/// The events of one session and of its workers, in the order in which the browser sent them. Ends when
/// the page or the browser is gone.
#[derive(Debug)]
pub struct Events {
    pub(crate) queue: mpsc::UnboundedReceiver<Event>,
    pub(crate) session: String,
    pub(crate) shared: Arc<Shared>,
}

impl Events {
    /// Waits for the next event; `None` when the page or the browser is gone. Safe to cancel.
    pub async fn next(&mut self) -> Option<Event> {
        self.queue.recv().await
    }

    /// The next event that has been received already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.try_recv().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // The routes of its workers have the same receiver.
        self.queue.close();
        self.shared
            .routes()
            .sessions
            .retain(|session, route| *session != self.session && !route.events.is_closed());
    }
}

/// One event, not parsed yet.
#[derive(Debug)]
pub struct Event {
    pub(crate) method: String,
    /// JSON.
    pub(crate) params: Bytes,
    pub(crate) sequence: u64,
    pub(crate) worker: Option<String>,
}

/// Events that could not be parsed, each reported once.
static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Event {
    /// The number of this message among all messages of the browser, comparable with
    /// [`Reply::sequence`](crate::Reply::sequence).
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The session of the worker that sent the event; `None` if the page sent it.
    #[must_use]
    pub fn worker_session(&self) -> Option<&str> {
        self.worker.as_deref()
    }

    /// Whether this is an `E`.
    #[must_use]
    pub fn is<E: MethodType>(&self) -> bool {
        E::method_id() == self.method
    }

    /// Parses the event as an `E`, its generated type. The type fails on enum values that a later Chromium
    /// adds and on fields that it no longer sends, so the caller must decide what an event means that
    /// cannot be parsed. The first failure of each event is logged.
    ///
    /// # Errors
    /// [`CdpError::Decode`].
    pub fn parse<E: MethodType + DeserializeOwned>(&self) -> Result<E, CdpError> {
        debug_assert!(self.is::<E>(), "{} is not parsed as {}", self.method, E::method_id());
        self.parse_partial()
    }

    /// Parses some fields of the event, for events whose generated type is not robust enough. `T` may
    /// borrow from the event.
    ///
    /// # Errors
    /// [`CdpError::Decode`].
    pub fn parse_partial<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        serde_json::from_slice(&self.params).map_err(|source| {
            let method = self.method.clone();
            if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(method.clone()) {
                tracing::debug!(method, error = %source, "cannot decode an event of this browser");
            }
            CdpError::Decode { method, source }
        })
    }
}
