//! The debugging pipes: Chromium reads commands from descriptor 3 and writes replies and events to
//! descriptor 4.
//!
//! Invariant: the reader ends when the browser closes its pipe, and then every wait ends; the writer ends
//! when the connection is dropped or the browser stops reading, and then the pipe closes.

use std::{io, os::fd::OwnedFd, process::Command, sync::Arc};

use bytes::Bytes;
use command_fds::{CommandFdExt as _, FdMapping};
use memchr::memchr;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::unix::pipe,
    sync::{mpsc, watch},
};

use crate::{
    incoming::{Arrived, IncomingMessage},
    message::{self, Message},
    routes::{Incoming, Shared},
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
        Message::Event(session, mut event) => {
            if let Some(route) = shared.routes().sessions.get(&session) {
                event.sequence = sequence;
                event.worker = route.worker.then_some(session);
                route.events.send(event);
            }
        }
        Message::Attached(context, mut event) => {
            if let Some(route) = shared.routes().contexts.get(&context) {
                event.sequence = sequence;
                route.events.send(event);
            }
        }
        Message::Detached(session, mut event) => {
            // The events of a page end here.
            if let Some(route) = shared.routes().sessions.remove(&session)
                && route.worker
            {
                event.sequence = sequence;
                route.events.send(event);
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
