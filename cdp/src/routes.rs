//! Who receives the replies and events of a connection.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::Event;

#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) next_id: AtomicU64,
    routes: Mutex<Routes>,
}

/// The receivers of replies, by command id, and of events.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) calls: HashMap<u64, oneshot::Sender<Incoming>>,
    pub(crate) sessions: HashMap<String, Route>,
    /// The receivers of events of the browser itself, by browser context.
    pub(crate) contexts: HashMap<String, Route>,
    pub(crate) closed: bool,
}

/// The receiver of the events of a session.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) events: mpsc::UnboundedSender<Event>,
    /// The session of a worker, whose events are received with those of its page.
    pub(crate) worker: bool,
}

/// A message and its number among all messages of the browser.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) message: Bytes,
    pub(crate) sequence: u64,
}

impl Shared {
    pub(crate) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
