//! The body of a request while the component reads it.
//!
//! Invariant: an upload ends within [`UPLOAD_TIMEOUT`] and never pauses longer than [`PAUSE_TIMEOUT`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::time::sleep;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::bounded_body::BoundedBody;

/// The largest body at 280 kB/s; nearly all are far smaller.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(2);
const PAUSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Records whether the body of a request arrived in time.
#[derive(Default)]
pub(super) struct Upload(Arc<AtomicBool>);

impl Upload {
    pub(super) fn timed_out(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn limit<B>(&self, body: B) -> WasiBody
    where
        B: Body<Data = Bytes, Error: Into<Error>> + Send + Unpin + 'static,
    {
        let (timed_out, deadline) = (Arc::clone(&self.0), sleep(UPLOAD_TIMEOUT));
        let end = async move {
            deadline.await;
            Error::ConnectionReadTimeout
        };
        BoundedBody::new(body, PAUSE_TIMEOUT, end)
            .map_err(move |error| {
                if matches!(error, Error::ConnectionReadTimeout) {
                    timed_out.store(true, Ordering::Relaxed);
                }
                error
            })
            .boxed_unsync()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_or_is_too_slow_fails() {
        let pending = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Error>>());
        let upload = Upload::default();
        let began = Instant::now();
        upload.limit(pending).collect().await.map(drop).unwrap_err();
        assert_eq!(began.elapsed().as_secs(), PAUSE_TIMEOUT.as_secs());
        assert!(upload.timed_out());

        let slow = futures::stream::unfold((), |()| async {
            sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, Error>(Frame::data(Bytes::from_static(b"x"))), ()))
        });
        let upload = Upload::default();
        let began = Instant::now();
        upload.limit(StreamBody::new(Box::pin(slow))).collect().await.map(drop).unwrap_err();
        assert_eq!(began.elapsed().as_secs(), UPLOAD_TIMEOUT.as_secs());
        assert!(upload.timed_out());
    }
}
