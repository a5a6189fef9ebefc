//! The debugging pipes: Chromium reads commands from descriptor 3 and writes replies and events to
//! descriptor 4, which are routed to their receivers here.
//!
//! Invariant: the reader ends when the browser closes its pipe, and then every wait ends; the writer ends
//! when the connection is dropped or the browser stops reading, and then the pipe closes.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use bytes::Bytes;
use command_fds::{CommandFdExt as _, FdMapping};
use memchr::memchr;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::unix::pipe,
    sync::{mpsc, oneshot, watch},
};

use crate::{
    Event,
    event::EventSender,
    incoming::{Arrived, IncomingMessage},
    message::{self, Message},
};

/// The capacity of a pipe on Linux.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The caller's ends of the two pipes of a browser.
#[derive(Debug)]
pub struct BrowserPipes {
    /// Written by the caller, read by the browser from descriptor 3.
    pub to_browser: OwnedFd,
    /// Read by the caller, written by the browser to descriptor 4.
    pub from_browser: OwnedFd,
}

impl BrowserPipes {
    /// Adds both pipes to a command that starts Chromium with `--remote-debugging-pipe`, directly or
    /// through commands that keep descriptors open. Call it once for each command. Drop the command after
    /// the start: it holds the browser's ends, and the end of the browser is noticed only when no other
    /// process has them open.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn attach(command: &mut Command) -> io::Result<Self> {
        let (browser_input, to_browser) = io::pipe()?;
        let (from_browser, browser_output) = io::pipe()?;
        command
            .fd_mappings(vec![
                FdMapping { parent_fd: browser_input.into(), child_fd: 3 },
                FdMapping { parent_fd: browser_output.into(), child_fd: 4 },
            ])
            .expect("3 and 4 are different descriptors");
        Ok(Self { to_browser: to_browser.into(), from_browser: from_browser.into() })
    }
}

pub(crate) fn spawn_writer(pipe: OwnedFd, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    let mut pipe = pipe::Sender::from_owned_fd(pipe)?;
    tokio::spawn(async move {
        while let Some(message) = queue.recv().await {
            // The reader notices that the browser is gone and ends all waits.
            if pipe.write_all(&message).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

pub(crate) fn spawn_reader(
    pipe: OwnedFd,
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
) -> io::Result<()> {
    let mut pipe = BufReader::with_capacity(READ_BUFFER_BYTES, pipe::Receiver::from_owned_fd(pipe)?);
    tokio::spawn(async move {
        let guard = CloseOnDrop { shared, closing };
        for sequence in 0.. {
            // An error or the end; a message without terminator is one that the browser did not finish.
            let Ok(Some(arrived)) = receive(&mut pipe, &guard.shared).await else { return };
            match arrived {
                Arrived::Message(message) => deliver(&guard.shared, Bytes::from(message), sequence),
                Arrived::LargeReply(id) => guard.shared.reply(id, Incoming { message: None, sequence }),
                Arrived::Unwanted => {}
                Arrived::LargeEvent => tracing::warn!("an event was too large and is lost"),
            }
        }
    });
    Ok(())
}

/// The next message; `None` if the pipe ends before its terminator.
async fn receive(pipe: &mut BufReader<pipe::Receiver>, shared: &Shared) -> io::Result<Option<Arrived>> {
    let mut message = IncomingMessage::default();
    loop {
        let received = pipe.fill_buf().await?;
        if received.is_empty() {
            return Ok(None);
        }
        let end = memchr(message::TERMINATOR, received);
        let length = end.unwrap_or(received.len());
        message.push(&received[..length], |id| shared.max_reply_bytes(id));
        pipe.consume(length + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Some(message.finish()));
        }
    }
}

fn deliver(shared: &Shared, message: Bytes, sequence: u64) {
    let message = match message::classify(message) {
        Ok(message) => message,
        Err(error) => return tracing::error!(%error, "the browser sent a message that is not JSON"),
    };
    match message {
        Message::Reply(id, message) => shared.reply(id, Incoming { message: Some(message), sequence }),
        Message::Event(session, event) => shared.event(&session, Event { sequence, ..event }),
        Message::Attached(context, event) => {
            let session = shared.routes().contexts.get(&context).cloned();
            if let Some(session) = session {
                shared.event(&session, Event { sequence, ..event });
            }
        }
        Message::Detached(session, event) => {
            // The events of a page end here.
            let route = shared.routes().sessions.remove(&session);
            if let Some(Route::Worker { page }) = route {
                shared.event(&page, Event { sequence, ..event });
            }
        }
        Message::Other => {}
    }
}

/// Ends every wait, also when the task of the reader is cancelled with its runtime.
struct CloseOnDrop {
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let (calls, sessions) = {
            let mut routes = self.shared.routes();
            routes.closed = true;
            (std::mem::take(&mut routes.calls), std::mem::take(&mut routes.sessions))
        };
        drop((calls, sessions));
        self.closing.send_replace(true);
    }
}

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::{sync::mpsc, time::timeout};

    use super::*;
    use crate::{Connection, Session};

    async fn next(events: &mut crate::Events) -> Option<Event> {
        timeout(Duration::from_mins(1), events.next()).await.expect("an event, or the end")
    }

    #[tokio::test]
    async fn the_events_of_a_page_end_with_it_although_its_workers_run() {
        let (from_browser, browser_output) = io::pipe().unwrap();
        let (_browser_input, to_browser) = io::pipe().unwrap();
        let pipes = BrowserPipes { to_browser: to_browser.into(), from_browser: from_browser.into() };
        let connection = Arc::new(Connection::open(pipes).unwrap());
        let (messages, mut queue) = mpsc::unbounded_channel::<Value>();
        let mut output = pipe::Sender::from_owned_fd(browser_output.into()).unwrap();
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                output.write_all(format!("{message}\0").as_bytes()).await.unwrap();
            }
        });
        let page = |id: &str| {
            let (session, events) = Session::new(Arc::clone(&connection), id.to_owned().into());
            session.receive_workers_of(&format!("context of {id}").into());
            let _ = session.worker_session(format!("worker of {id}").into());
            (session, events)
        };
        let (_first, mut first) = page("first");
        let (_second, mut second) = page("second");
        let detached =
            |id: &str| json!({ "method": "Target.detachedFromTarget", "params": { "sessionId": id } });
        for message in [
            json!({ "method": "Target.attachedToTarget", "params": { "targetInfo": { "browserContextId": "context of first" } } }),
            json!({ "method": "M", "params": {}, "sessionId": "worker of first" }),
            json!({ "method": "M", "params": {}, "sessionId": "first" }),
            detached("worker of second"),
            detached("first"),
            json!({ "method": "M", "params": {}, "sessionId": "worker of first" }),
        ] {
            messages.send(message).unwrap();
        }
        assert_eq!(next(&mut first).await.unwrap().method, "Target.attachedToTarget");
        assert_eq!(next(&mut first).await.unwrap().worker.as_deref(), Some("worker of first"));
        assert_eq!(next(&mut first).await.unwrap().worker, None);
        assert!(next(&mut first).await.is_none());
        assert_eq!(next(&mut second).await.unwrap().method, "Target.detachedFromTarget");
        // The browser exits.
        drop(messages);
        assert!(next(&mut second).await.is_none());
        drop((first, second));
        let routes = connection.shared.routes();
        assert!(routes.sessions.is_empty() && routes.contexts.is_empty());
    }
}
