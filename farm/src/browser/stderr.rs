//! The end of a browser's standard error.
//!
//! Invariant: the pipe is always drained, so that the browser never blocks on it, and at most
//! [`MAX_TAIL_BYTES`] are kept.

use std::{io, os::fd::OwnedFd, process::ChildStderr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{io::AsyncReadExt as _, net::unix::pipe, task::JoinHandle};

/// Enough for a fatal message and its context.
const MAX_TAIL_BYTES: usize = 4 * 1024;
/// The pipe closes when the process exits, unless a process that the farm did not start still holds it.
const EOF_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads standard error in a background task.
#[derive(Debug)]
pub(super) struct StderrTail {
    tail: Arc<Mutex<Vec<u8>>>,
    drain: JoinHandle<()>,
}

impl StderrTail {
    pub(super) fn listen(stderr: ChildStderr) -> io::Result<Self> {
        let mut pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        let tail = Arc::<Mutex<Vec<u8>>>::default();
        let sink = Arc::clone(&tail);
        let drain = tokio::spawn(async move {
            let mut chunk = [0; 1024];
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                let mut tail = sink.lock();
                tail.extend_from_slice(&chunk[..length]);
                let surplus = tail.len().saturating_sub(MAX_TAIL_BYTES);
                tail.drain(..surplus);
            }
        });
        Ok(Self { tail, drain })
    }

    /// The end of what has been written so far.
    pub(super) fn text(&self) -> String {
        let tail = self.tail.lock();
        String::from_utf8_lossy(&tail).trim().to_owned()
    }

    /// As [`StderrTail::text`], after the stream has ended.
    pub(super) async fn into_text(mut self) -> String {
        let _ = tokio::time::timeout(EOF_TIMEOUT, &mut self.drain).await;
        self.text()
    }
}
