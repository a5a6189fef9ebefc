//! Events, and the queue of the events of a session and of its workers.
//!
//! Invariant: the events in a queue have at most [`MAX_QUEUED_BYTES`]. A queue that was full ends and loses all its
//! events, because a receiver that misses one would not know it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use bytes::Bytes;
use chromiumoxide_types::MethodType;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::CdpError;

/// One event, not parsed yet.
#[derive(Debug)]
pub struct Event {
    pub(crate) method: String,
    /// JSON.
    pub(crate) params: Bytes,
    /// The number of this message among all messages of the browser, comparable with
    /// [`Reply::sequence`](crate::Reply::sequence).
    pub sequence: u64,
    /// The session of the worker that sent the event; `None` if the page sent it.
    pub worker: Option<String>,
}

impl Event {
    /// Whether this is an `E`.
    #[must_use]
    pub fn is<E: MethodType>(&self) -> bool {
        E::method_id() == self.method
    }

    /// Its name, for events that have no generated type.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Parses the event as an `E`, its generated type. The type fails on enum values that a later Chromium
    /// adds and on mandatory fields that another version does not send, so the caller must decide what an
    /// event means that cannot be parsed.
    ///
    /// # Errors
    /// [`CdpError::Decode`].
    pub fn parse<E: MethodType + DeserializeOwned>(&self) -> Result<E, CdpError> {
        debug_assert!(self.is::<E>(), "{} is parsed as {}", self.method, E::method_id());
        serde_json::from_slice(&self.params)
            .map_err(|error| CdpError::Decode { method: self.method.clone(), error })
            .inspect_err(|error| tracing::trace!(%error, "cannot decode an event of this browser"))
    }

    /// The parameters as a type that has only the fields that the caller reads; `None` if one is missing.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.params).ok()
    }

    /// The parameters without a type, for events that [`parse`](Self::parse) cannot parse; null if there are
    /// none.
    #[must_use]
    pub fn fields(&self) -> Value {
        serde_json::from_slice(&self.params).unwrap_or_default()
    }
}

/// A receiver reads events as they arrive, so more are waiting only if a page makes them without end.
const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;
/// Memory of an event besides its parameters.
const EVENT_BYTES: usize = 256;

#[derive(Debug)]
pub(crate) struct EventSender {
    events: mpsc::UnboundedSender<Event>,
    state: Arc<State>,
}

#[derive(Debug)]
pub(crate) struct EventReceiver {
    events: mpsc::UnboundedReceiver<Event>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: AtomicUsize,
    has_overflowed: AtomicBool,
}

pub(crate) fn event_queue() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let state = Arc::<State>::default();
    (EventSender { events: sender, state: Arc::clone(&state) }, EventReceiver { events: receiver, state })
}

impl EventSender {
    /// Discards the event if the receiver has been dropped, or if the queue was full.
    pub(crate) fn send(&self, event: Event) {
        if self.state.has_overflowed.load(Ordering::Relaxed) {
            return;
        }
        let bytes = bytes(&event);
        if self.state.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_QUEUED_BYTES {
            self.state.has_overflowed.store(true, Ordering::Relaxed);
        }
        // Also an event that does not fit: it wakes the receiver.
        let _ = self.events.send(event);
    }
}

impl EventReceiver {
    /// `None` when the sender has been dropped, or if the queue was full. Safe to cancel.
    pub(crate) async fn recv(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
        self.received(event)
    }

    pub(crate) fn try_recv(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok()?;
        self.received(event)
    }

    pub(crate) fn has_overflowed(&self) -> bool {
        self.state.has_overflowed.load(Ordering::Relaxed)
    }

    fn received(&mut self, event: Event) -> Option<Event> {
        if self.has_overflowed() {
            self.events.close();
            while self.events.try_recv().is_ok() {}
            return None;
        }
        self.state.bytes.fetch_sub(bytes(&event), Ordering::Relaxed);
        Some(event)
    }
}

fn bytes(event: &Event) -> usize {
    event.params.len() + EVENT_BYTES
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use chromiumoxide_cdp::cdp::browser_protocol::page::{DialogType, EventJavascriptDialogOpening};

    use super::*;

    fn dialog(kind: &str) -> Event {
        let params = format!(
            r#"{{"url":"","frameId":"F","message":"","type":"{kind}","hasBrowserHandler":false,"new":[1]}}"#
        );
        let method = EventJavascriptDialogOpening::IDENTIFIER.to_owned();
        Event { method, params: params.into(), sequence: 0, worker: None }
    }

    #[test]
    fn an_unknown_field_is_ignored_and_an_unknown_enum_value_is_an_error() {
        let known: EventJavascriptDialogOpening = dialog("alert").parse().unwrap();
        assert_eq!(known.r#type, DialogType::Alert);
        let unknown = dialog("newType");
        assert!(matches!(unknown.parse::<EventJavascriptDialogOpening>(), Err(CdpError::Decode { .. })));
        assert_eq!(unknown.fields()["type"], "newType");
    }

    fn event(bytes: usize) -> Event {
        Event { method: "M".to_owned(), params: Bytes::from(vec![b' '; bytes]), sequence: 0, worker: None }
    }

    #[tokio::test]
    async fn events_that_are_read_do_not_count() {
        let (sender, mut receiver) = event_queue();
        for _ in 0..100 {
            sender.send(event(MAX_QUEUED_BYTES / 2));
            assert!(receiver.recv().await.is_some());
        }
        assert!(receiver.try_recv().is_none() && !receiver.has_overflowed());
    }

    #[tokio::test]
    async fn a_queue_that_was_full_ends_and_holds_nothing() {
        // A few large events, and many without parameters.
        for (size, count) in
            [(MAX_QUEUED_BYTES / 3, 4), (MAX_QUEUED_BYTES, 1), (0, MAX_QUEUED_BYTES / EVENT_BYTES + 1)]
        {
            let (sender, mut receiver) = event_queue();
            for _ in 0..count {
                sender.send(event(size));
            }
            assert!(receiver.has_overflowed());
            assert!(receiver.recv().await.is_none());
            sender.send(event(0));
            assert!(receiver.recv().await.is_none());
        }
    }
}
