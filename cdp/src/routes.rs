//! Who receives the replies and events of a connection.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{Event, event_queue::EventSender};

#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) next_id: AtomicU64,
    routes: Mutex<Routes>,
}

/// The receivers of replies, by command id, and of events.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) calls: HashMap<u64, WaitingCall>,
    pub(crate) sessions: HashMap<String, Route>,
    /// The sessions that receive events of the browser itself, by browser context.
    pub(crate) contexts: HashMap<String, String>,
    pub(crate) closed: bool,
}

/// The receiver of the reply to a command.
#[derive(Debug)]
pub(crate) struct WaitingCall {
    pub(crate) reply: oneshot::Sender<Incoming>,
    pub(crate) max_reply_bytes: usize,
}

/// The receiver of the events of a session.
///
/// Invariant: a queue has one sender, so it ends with its page, whatever still runs of its workers.
#[derive(Debug)]
pub(crate) enum Route {
    Page(EventSender),
    /// A worker, whose events are received with those of the session of its page.
    Worker {
        page: String,
    },
}

/// A reply and its number among all messages of the browser.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// `None` if it was too large.
    pub(crate) message: Option<Bytes>,
    pub(crate) sequence: u64,
}

impl Shared {
    pub(crate) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event of a session to its receiver.
    pub(crate) fn event(&self, session: &str, mut event: Event) {
        let routes = self.routes();
        let page = match routes.sessions.get(session) {
            Some(Route::Worker { page }) => {
                event.worker = Some(session.to_owned());
                page
            }
            _ => session,
        };
        if let Some(Route::Page(events)) = routes.sessions.get(page) {
            events.send(event);
        }
    }

    /// The limit of the reply to a command. Nothing is kept of a reply without a receiver.
    pub(crate) fn max_reply_bytes(&self, id: u64) -> usize {
        self.routes().calls.get(&id).map_or(0, |call| call.max_reply_bytes)
    }

    /// Discards the reply if it has no receiver.
    pub(crate) fn reply(&self, id: u64, incoming: Incoming) {
        let call = self.routes().calls.remove(&id);
        if let Some(call) = call {
            let _ = call.reply.send(incoming);
        }
    }
}
