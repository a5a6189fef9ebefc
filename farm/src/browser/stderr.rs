//! What a browser wrote last on standard error.
//!
//! Invariant: the pipe is always drained, so that a browser never blocks on it, and no more than
//! [`KEPT`] bytes are held.

use std::{
    io,
    os::fd::OwnedFd,
    process::ChildStderr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe, task::JoinHandle};

/// A fatal message and its surroundings.
const KEPT: usize = 4 * 1024;
/// The pipe ends with the process, unless something the farm did not start still holds it.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Collects the end of the stream in the background.
#[derive(Debug)]
pub(super) struct StderrTail {
    kept: Arc<Mutex<Vec<u8>>>,
    drain: JoinHandle<()>,
}

impl StderrTail {
    pub(super) fn listen(stderr: ChildStderr) -> io::Result<Self> {
        let mut pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let sink = Arc::clone(&kept);
        let drain = tokio::spawn(async move {
            let mut chunk = [0; 1024];
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                let mut kept = sink.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..length]);
                let surplus = kept.len().saturating_sub(KEPT);
                kept.drain(..surplus);
            }
        });
        Ok(Self { kept, drain })
    }

    /// What there is by now.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }

    /// All there is, once the stream has ended.
    pub(super) async fn into_text(mut self) -> String {
        let _ = tokio::time::timeout(END_LIMIT, &mut self.drain).await;
        self.text()
    }
}

/// `: text`, or nothing where there is no text.
pub(super) fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
