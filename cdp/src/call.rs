//! Commands in progress and their replies.

use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::oneshot;

use crate::{
    CdpError, message,
    routes::{Incoming, Shared},
};

/// Errors of commands for a page that has closed itself, before or during the command.
const PAGE_GONE: [&str; 2] = ["Inspected target navigated or closed", "Session with given id not found."];

/// A command in progress, as a future of its result. Dropping it discards the reply; the browser may still
/// run the command.
#[derive(Debug)]
pub struct Call<R> {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) reply: oneshot::Receiver<Incoming>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) result: PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    /// Waits for the reply without parsing it, so that a large one can be read in place. Safe to cancel and
    /// to call again until it has returned.
    ///
    /// # Errors
    /// [`CdpError::Closed`] or [`CdpError::TooLarge`].
    pub async fn reply(&mut self) -> Result<Reply, CdpError> {
        let received = (&mut self.reply).await;
        self.received(received)
    }

    fn received(&mut self, received: Result<Incoming, oneshot::error::RecvError>) -> Result<Reply, CdpError> {
        let Incoming { message, sequence } = received.map_err(|_| CdpError::Closed)?;
        let method = std::mem::take(&mut self.method);
        match message {
            Some(message) => Ok(Reply { message, sequence, method }),
            None => Err(CdpError::TooLarge { method }),
        }
    }
}

impl<R: DeserializeOwned> Future for Call<R> {
    type Output = Result<R, CdpError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(Pin::new(&mut self.reply).poll(context));
        Poll::Ready(self.received(received).and_then(|reply| reply.parse()))
    }
}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        self.shared.routes().calls.remove(&self.id);
    }
}

/// The unparsed reply to a command.
#[derive(Debug)]
pub struct Reply {
    pub(crate) message: Bytes,
    /// The number of this message among all messages of the browser, comparable with
    /// [`Event::sequence`](crate::Event::sequence).
    pub sequence: u64,
    pub(crate) method: String,
}

impl Reply {
    /// Parses the result. `T` may borrow from the reply.
    ///
    /// # Errors
    /// [`CdpError::Refused`] or [`CdpError::PageGone`] if the browser replied with an error,
    /// [`CdpError::Decode`] if the result is not a `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        match message::decode_reply(&self.message) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(source)) if PAGE_GONE.contains(&source.message.as_str()) => Err(CdpError::PageGone),
            Ok(Err(source)) => Err(CdpError::Refused { method: self.method.clone(), source }),
            Err(source) => Err(CdpError::Decode { method: self.method.clone(), source }),
        }
    }
}
