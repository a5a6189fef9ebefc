//! The Chrome `DevTools` protocol over a pair of pipes: calls, flat sessions, events.
//!
//! A client of our own, over the typed commands of `chromiumoxide_cdp`, because of what a pipe
//! gives: no TCP debugging port that a page could reach, a dead browser is seen at once as the end
//! of the pipe, nothing is enabled unasked and nothing is polled.
//!
//! Invariant: when the pipe ends, every pending call fails at once and every event stream ends.
//! Events and replies of sessions nobody listens to are dropped. Left to others: starting the
//! browser, deciding how long a call may take.

mod binary;
mod pipe;
mod wire;

use std::{
    collections::HashMap,
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::target::SessionId;
use chromiumoxide_types::{Command, MethodType};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::binary::BinaryError;

/// What the browser says to a command for a page that has closed itself, before and after.
const GONE: [&str; 2] = ["Inspected target navigated or closed", "Session with given id not found."];

/// Why a call brought no result.
#[derive(Debug, thiserror::Error)]
pub enum CdpError {
    /// The browser is gone.
    #[error("the browser closed its pipe")]
    Closed,
    /// The page is gone, or the browser and the page with it.
    #[error("the page is gone")]
    PageGone,
    /// The browser answered with an error.
    #[error("the browser refused {method}")]
    Refused {
        /// The command.
        method: String,
        /// Its answer.
        #[source]
        source: chromiumoxide_types::Error,
    },
    /// The browser answered with something this version does not understand.
    #[error("the browser's answer to {method} is not understood")]
    Answer {
        /// The command.
        method: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A command could not be written down.
    #[error("{method} could not be encoded")]
    Encode {
        /// The command.
        method: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// A connection to one browser. Dropping it closes the pipes, upon which the browser exits.
#[derive(Debug)]
pub(crate) struct Connection {
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    shared: Arc<Shared>,
    closed: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    next_id: AtomicU64,
    routes: Mutex<Routes>,
}

/// Who waits for what.
#[derive(Debug, Default)]
struct Routes {
    calls: HashMap<u64, oneshot::Sender<Incoming>>,
    sessions: HashMap<String, Route>,
    closed: bool,
}

/// Where the events of a session go.
#[derive(Debug, Clone)]
struct Route {
    events: mpsc::UnboundedSender<Event>,
    /// The session of a worker, whose events join those of its page.
    worker: bool,
}

/// A message as the reader took it from the pipe.
#[derive(Debug)]
struct Incoming {
    message: Bytes,
    sequence: u64,
}

impl Shared {
    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Takes the farm's ends of the pipes: `to_browser` leads to the browser's descriptor 3,
    /// `from_browser` comes from its descriptor 4.
    ///
    /// # Errors
    /// When a descriptor is not a pipe, or outside a Tokio runtime.
    pub(crate) fn open(to_browser: OwnedFd, from_browser: OwnedFd) -> io::Result<Self> {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (closing, closed) = watch::channel(false);
        let shared = Arc::<Shared>::default();
        pipe::spawn_writer(to_browser, queue)?;
        pipe::spawn_reader(from_browser, Arc::clone(&shared), closing)?;
        Ok(Self { outgoing, shared, closed })
    }

    /// Completes when the browser is gone.
    pub(crate) async fn closed(&self) {
        // An error means that the reader is gone, which comes to the same.
        let _ = self.closed.clone().wait_for(|closed| *closed).await;
    }

    /// Whether the browser is gone.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Sends a command to the browser itself and waits for its answer.
    pub(crate) async fn call<C: Command>(&self, command: &C) -> Result<C::Response, CdpError> {
        self.start(None, command)?.await
    }

    /// Sends a command to the browser itself whose answer nobody needs.
    pub(crate) fn send<C: Command>(&self, command: &C) -> Result<(), CdpError> {
        self.push(None, command).map(drop)
    }

    fn start<C: Command>(
        &self,
        session: Option<&SessionId>,
        command: &C,
    ) -> Result<Call<C::Response>, CdpError> {
        let (answer, reply) = oneshot::channel();
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let method = command.identifier().into_owned();
        {
            let mut routes = self.shared.routes();
            if routes.closed {
                return Err(CdpError::Closed);
            }
            routes.calls.insert(id, answer);
        }
        let call =
            Call { id, method, reply, shared: Arc::clone(&self.shared), result: std::marker::PhantomData };
        self.push_as(id, session, command)?;
        Ok(call)
    }

    fn push<C: Command>(&self, session: Option<&SessionId>, command: &C) -> Result<u64, CdpError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        self.push_as(id, session, command).map(|()| id)
    }

    fn push_as<C: Command>(&self, id: u64, session: Option<&SessionId>, command: &C) -> Result<(), CdpError> {
        let message = wire::encode(id, session.map(AsRef::as_ref), command)
            .map_err(|source| CdpError::Encode { method: command.identifier().into_owned(), source })?;
        self.outgoing.send(message).map_err(|_| CdpError::Closed)
    }
}

/// A call under way. Dropping it forgets the call; the browser may carry it out all the same.
#[derive(Debug)]
pub(crate) struct Call<R> {
    id: u64,
    method: String,
    reply: oneshot::Receiver<Incoming>,
    shared: Arc<Shared>,
    result: std::marker::PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    /// Waits for the answer as it came, so that a large one can be read in place. May be cancelled and
    /// called again; not after it has returned.
    pub(crate) async fn reply(&mut self) -> Result<Reply, CdpError> {
        let Incoming { message, sequence } = (&mut self.reply).await.map_err(|_| CdpError::Closed)?;
        Ok(Reply { message, sequence, method: std::mem::take(&mut self.method) })
    }
}

impl<R: DeserializeOwned> Future for Call<R> {
    type Output = Result<R, CdpError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(Pin::new(&mut self.reply).poll(context));
        let Incoming { message, sequence } = received.map_err(|_| CdpError::Closed)?;
        let method = std::mem::take(&mut self.method);
        Poll::Ready(Reply { message, sequence, method }.parse())
    }
}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        self.shared.routes().calls.remove(&self.id);
    }
}

/// An answer as it came over the pipe.
#[derive(Debug)]
pub(crate) struct Reply {
    message: Bytes,
    sequence: u64,
    method: String,
}

impl Reply {
    /// Its place among all messages of the browser, to be compared with [`Event::sequence`].
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Reads the result. `T` may borrow from the answer.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        match wire::decode_reply(&self.message) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(source)) if GONE.contains(&source.message.as_str()) => Err(CdpError::PageGone),
            Ok(Err(source)) => Err(CdpError::Refused { method: self.method.clone(), source }),
            Err(source) => Err(CdpError::Answer { method: self.method.clone(), source }),
        }
    }
}

/// One attached target: a page.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    connection: Arc<Connection>,
    id: SessionId,
}

impl Session {
    /// A session that has been attached on `connection`, and its events from now on. Domains that
    /// bring events must be enabled after this call, not before.
    pub(crate) fn new(connection: Arc<Connection>, id: SessionId) -> (Self, Events) {
        let (route, queue) = mpsc::unbounded_channel();
        let key: &str = id.as_ref();
        let mut routes = connection.shared.routes();
        if !routes.closed {
            routes.sessions.insert(key.to_owned(), Route { events: route, worker: false });
        }
        let events = Events { queue, key: key.to_owned(), shared: Arc::clone(&connection.shared) };
        drop(routes);
        (Self { connection, id }, events)
    }

    /// The session of a worker of this page. Its events join those of the page from now on.
    pub(crate) fn worker(&self, id: SessionId) -> Self {
        let mut routes = self.connection.shared.routes();
        let own: &str = self.id.as_ref();
        if let Some(route) = routes.sessions.get(own).cloned() {
            let key: &str = id.as_ref();
            routes.sessions.insert(key.to_owned(), Route { worker: true, ..route });
        }
        drop(routes);
        Self { connection: Arc::clone(&self.connection), id }
    }

    /// Sends a command at once and returns the call to wait for, so that several can be under way.
    pub(crate) fn start<C: Command>(&self, command: &C) -> Result<Call<C::Response>, CdpError> {
        self.connection.start(Some(&self.id), command)
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn call<C: Command>(&self, command: &C) -> Result<C::Response, CdpError> {
        self.start(command)?.await
    }

    /// Sends a command whose answer nobody needs.
    pub(crate) fn send<C: Command>(&self, command: &C) -> Result<(), CdpError> {
        self.connection.push(Some(&self.id), command).map(drop)
    }
}

/// The events of one session, in order. Ends when the page or the browser is gone.
#[derive(Debug)]
pub(crate) struct Events {
    queue: mpsc::UnboundedReceiver<Event>,
    key: String,
    shared: Arc<Shared>,
}

impl Events {
    /// The next event; `None` when the page or the browser is gone. May be cancelled at any time.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.queue.recv().await
    }

    /// The next event that is there already.
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        self.queue.try_recv().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Those of its workers lead to the same receiver.
        self.queue.close();
        self.shared.routes().sessions.retain(|key, route| *key != self.key && !route.events.is_closed());
    }
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    method: String,
    params: Box<RawValue>,
    sequence: u64,
    worker: Option<String>,
}

impl Event {
    /// Its place among all messages of the browser, to be compared with [`Reply::sequence`].
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The session of the page's worker that it is of; none if it is of the page itself.
    pub(crate) fn worker(&self) -> Option<&str> {
        self.worker.as_deref()
    }

    /// Whether it is an `E`.
    pub(crate) fn is<E: MethodType>(&self) -> bool {
        E::method_id() == self.method
    }

    /// Reads what it brings. Callers name only the fields they need: an enum's new variant in a
    /// later Chromium must not make an event unreadable.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        serde_json::from_str(self.params.get())
            .map_err(|source| CdpError::Answer { method: self.method.clone(), source })
    }
}
