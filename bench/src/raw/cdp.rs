//! The protocol's messages over the pipe: commands with their answers, and events.
//!
//! Invariant: answers find their command by its number, events go to everybody who listens to that
//! session; when the pipe closes, whoever waits is told.

use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::unix::pipe,
    sync::{broadcast, mpsc, oneshot},
};

/// The session of a page, as Chromium names it.
pub(super) type SessionId = Arc<str>;

/// An event of some session.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) session: Option<SessionId>,
    pub(super) method: Arc<str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Command<'a, P> {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    method: &'a str,
    params: &'a P,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    id: Option<u64>,
    session_id: Option<&'a str>,
    method: Option<&'a str>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

type Reply = Result<Box<RawValue>, String>;
type Waiting = Mutex<HashMap<u64, oneshot::Sender<Reply>>>;

/// A connection to one browser.
pub(super) struct Connection {
    next: AtomicU64,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<Waiting>,
    events: broadcast::Sender<Event>,
}

/// Events that may pile up before a listener misses some: far more than a page makes.
const EVENTS: usize = 4_096;

impl Connection {
    /// Takes over both ends.
    pub(super) fn open(to_browser: OwnedFd, from_browser: OwnedFd) -> Result<Arc<Self>> {
        let mut to_browser = pipe::Sender::from_owned_fd(to_browser)?;
        let mut from_browser = BufReader::new(pipe::Receiver::from_owned_fd(from_browser)?);
        let (outgoing, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
        let (events, _) = broadcast::channel(EVENTS);
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                if to_browser.write_all(&message).await.is_err() {
                    return;
                }
            }
        });
        let (answers, listeners) = (Arc::clone(&waiting), events.clone());
        tokio::spawn(async move {
            let mut message = Vec::new();
            while matches!(from_browser.read_until(0, &mut message).await, Ok(1..)) {
                message.pop();
                deliver(&message, &answers, &listeners);
                message.clear();
            }
            lock(&answers).clear();
        });
        Ok(Arc::new(Self { next: AtomicU64::new(1), outgoing, waiting, events }))
    }

    /// Sends a command and waits for its answer.
    pub(super) async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = serde_json::to_vec(&Command { id, session_id: session, method, params })?;
        message.push(0);
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        self.outgoing.send(message).context("the browser is gone")?;
        match answer.await.context("the browser is gone")? {
            Ok(result) => Ok(result),
            Err(error) => bail!("{method}: {error}"),
        }
    }

    /// Events from now on.
    pub(super) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }
}

fn deliver(message: &[u8], waiting: &Waiting, listeners: &broadcast::Sender<Event>) {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(message) else { return };
    if let Some(sender) = message.id.and_then(|id| lock(waiting).remove(&id)) {
        let _ = sender.send(match (message.result, message.error) {
            (Some(result), _) => Ok(result.to_owned()),
            (None, error) => Err(error.map(|error| error.get().to_owned()).unwrap_or_default()),
        });
    } else if let Some(method) = message.method {
        let _ = listeners.send(Event { session: message.session_id.map(Arc::from), method: method.into() });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
