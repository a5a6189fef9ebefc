//! A body with limits of time.
//!
//! Invariant: a body that fails is dropped at once, and with it the connection that it is read from.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use wasmtime_wasi_http::Error;

/// A body that fails with [`Error::ConnectionReadTimeout`] when no frame arrives for `idle_timeout`, and
/// with the error of `end` when that completes while the body waits for a frame.
pub(crate) struct BoundedBody<B> {
    body: Option<B>,
    idle_timeout: Duration,
    idle: Pin<Box<Sleep>>,
    end: Pin<Box<dyn Future<Output = Error> + Send>>,
}

impl<B> BoundedBody<B> {
    pub(crate) fn new(
        body: B,
        idle_timeout: Duration,
        end: impl Future<Output = Error> + Send + 'static,
    ) -> Self {
        Self { body: Some(body), idle_timeout, idle: Box::pin(sleep(idle_timeout)), end: Box::pin(end) }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Error>> + Unpin> Body for BoundedBody<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            let deadline = Instant::now() + self.idle_timeout;
            self.idle.as_mut().reset(deadline);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let error = match self.end.as_mut().poll(context) {
            Poll::Ready(error) => error,
            Poll::Pending => match self.idle.as_mut().poll(context) {
                Poll::Ready(()) => Error::ConnectionReadTimeout,
                Poll::Pending => return Poll::Pending,
            },
        };
        self.body = None;
        Poll::Ready(Some(Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}
