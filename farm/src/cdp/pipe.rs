//! The two tasks of a connection: one reads the browser's pipe, one writes it.
//!
//! Invariant: the reader ends when the browser's end closes, and then nothing waits any more; the
//! writer ends when the connection is dropped or the browser stops reading, and then the pipe
//! closes.

use std::{io, os::fd::OwnedFd, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::unix::pipe,
    sync::{mpsc, watch},
};

use super::{
    Incoming, Shared,
    wire::{self, Message},
};

/// As much as a pipe of default size holds.
const READ_BUFFER: usize = 64 * 1024;

pub(super) fn spawn_writer(pipe: OwnedFd, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    let mut pipe = pipe::Sender::from_owned_fd(pipe)?;
    tokio::spawn(async move {
        while let Some(message) = queue.recv().await {
            // The reader sees the same end, and tells everybody.
            if pipe.write_all(&message).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

pub(super) fn spawn_reader(
    pipe: OwnedFd,
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
) -> io::Result<()> {
    let mut pipe = BufReader::with_capacity(READ_BUFFER, pipe::Receiver::from_owned_fd(pipe)?);
    tokio::spawn(async move {
        let guard = CloseOnDrop { shared, closing };
        for sequence in 0.. {
            let mut message = Vec::new();
            match pipe.read_until(wire::END, &mut message).await {
                Ok(0) | Err(_) => return,
                // Without its closing byte, the browser died in the middle of it.
                Ok(_) if message.pop() != Some(wire::END) => return,
                Ok(_) => deliver(&guard.shared, Bytes::from(message), sequence),
            }
        }
    });
    Ok(())
}

fn deliver(shared: &Shared, message: Bytes, sequence: u64) {
    let message = match wire::classify(message) {
        Ok(message) => message,
        Err(error) => return tracing::error!(%error, "a message of the browser is not JSON"),
    };
    // A receiver that is gone does not need the message.
    match message {
        Message::Reply(id, message) => {
            let call = shared.routes().calls.remove(&id);
            if let Some(call) = call {
                let _ = call.send(Incoming { message, sequence });
            }
        }
        Message::Event(session, mut event) => {
            if let Some(route) = shared.routes().sessions.get(&session) {
                event.sequence = sequence;
                event.worker = route.worker.then_some(session);
                let _ = route.events.send(event);
            }
        }
        Message::Detached(session) => drop(shared.routes().sessions.remove(&session)),
        Message::Other => {}
    }
}

/// Ends every wait, also when the reader's task is cancelled with its runtime.
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
