//! Bodies on their way through the server.
//!
//! Invariant: an upload ends within [`UPLOAD_WITHIN`] and never pauses longer than [`PAUSE`]; an
//! answer that is dropped before its end tells the component that its client hung up.

use std::{
    future::Future as _,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use super::gate::Permits;
use crate::{metrics::Metrics, runtime::HangUp};

/// The largest body at 280 kB/s; nearly all are far smaller.
const UPLOAD_WITHIN: Duration = Duration::from_mins(2);
/// Longest pause of a client in the middle of its body.
const PAUSE: Duration = Duration::from_secs(15);

/// One request's body.
pub(super) struct Upload(Arc<AtomicBool>);

impl Upload {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Whether the body did not arrive in time.
    pub(super) fn stalled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn guard<B>(&self, body: B) -> Guarded<B> {
        Guarded {
            body,
            stalled: Arc::clone(&self.0),
            until: Instant::now() + UPLOAD_WITHIN,
            timer: Box::pin(sleep(PAUSE)),
        }
    }
}

/// A request's body with its bounds of time.
pub(super) struct Guarded<B = Incoming> {
    body: B,
    stalled: Arc<AtomicBool>,
    until: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<B: Body<Data = Bytes, Error: Into<Error>> + Unpin> Body for Guarded<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let next = self.until.min(Instant::now() + PAUSE);
            self.timer.as_mut().reset(next);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.timer.as_mut().poll(context));
        self.stalled.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(Error::ConnectionReadTimeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer, from its request's arrival to its last byte.
pub(super) struct Answering {
    body: Option<WasiBody>,
    /// Bytes still to come, where the component announced how many.
    left: Option<u64>,
    complete: bool,
    hang_up: HangUp,
    metrics: Arc<Metrics>,
    permits: Option<Permits>,
}

impl Answering {
    /// A request came in. If this is dropped before it was answered, its client is gone.
    pub(super) fn begin(metrics: Arc<Metrics>) -> Self {
        metrics.began();
        Self { body: None, left: None, complete: false, hang_up: HangUp::new(), metrics, permits: None }
    }

    /// What tells the component that the client is gone.
    pub(super) fn hang_up(&self) -> HangUp {
        self.hang_up.clone()
    }

    /// The answer's body, which keeps the request's place until it is sent. One that is not
    /// `sent` at all, as to a HEAD request, is complete with its head.
    pub(super) fn with(mut self, body: WasiBody, sent: bool, permits: Option<Permits>) -> Self {
        self.complete = !sent || body.is_end_stream();
        self.left = body.size_hint().exact();
        self.body = Some(body);
        self.permits = permits;
        self
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.metrics.ended();
        if !self.complete {
            self.metrics.hung_up();
            self.hang_up.cancel();
        }
        drop(self.permits.take());
    }
}

impl Body for Answering {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        let ended = match &frame {
            // The end, or an error: not the client's doing.
            None | Some(Err(_)) => true,
            Some(Ok(_)) => body.is_end_stream(),
        };
        if let (Some(left), Some(Ok(frame))) = (&mut self.left, &frame) {
            *left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        // A body of a known length is not asked for its end.
        self.complete = ended || self.left == Some(0);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_or_drips_is_given_up() {
        let forever = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Error>>());
        let upload = Upload::new();
        let began = Instant::now();
        upload.guard(forever).collect().await.map(drop).unwrap_err();
        assert_eq!(began.elapsed().as_secs(), PAUSE.as_secs());
        assert!(upload.stalled());

        let drip = futures::stream::unfold((), |()| async {
            sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, Error>(Frame::data(Bytes::from_static(b"x"))), ()))
        });
        let upload = Upload::new();
        let began = Instant::now();
        upload.guard(StreamBody::new(Box::pin(drip))).collect().await.map(drop).unwrap_err();
        assert_eq!(began.elapsed().as_secs(), UPLOAD_WITHIN.as_secs());
    }

    #[tokio::test]
    async fn an_answer_dropped_before_its_end_is_a_hang_up() {
        let whole = || Full::new(Bytes::from_static(b"x")).map_err(Into::into).boxed_unsync();
        let answering = Answering::begin(Arc::default()).with(whole(), true, None);
        let hang_up = answering.hang_up();
        answering.collect().await.unwrap();
        assert!(!hang_up.is_cancelled());

        let answering = Answering::begin(Arc::default()).with(whole(), true, None);
        let hang_up = answering.hang_up();
        drop(answering);
        assert!(hang_up.is_cancelled());

        let answering = Answering::begin(Arc::default());
        let hang_up = answering.hang_up();
        drop(answering);
        assert!(hang_up.is_cancelled());

        let answering = Answering::begin(Arc::default()).with(whole(), false, None);
        let hang_up = answering.hang_up();
        drop(answering);
        assert!(!hang_up.is_cancelled());
    }
}
