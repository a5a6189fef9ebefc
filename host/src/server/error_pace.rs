//! Slows down flows with many error responses, such as a client that repeats a refused request at once.
//!
//! A refusal takes about a millisecond of CPU time, and the server has a higher priority than browsers: without a limit,
//! a few clients in a loop would leave no CPU time to renders.
//!
//! Invariant: the error responses of a flow have an average rate, with a burst of some seconds' responses, until they are
//! delayed by [`MAX_DELAY`]. A request whose response is delayed holds no place.

use std::{
    collections::HashMap,
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::body::Frame;
use parking_lot::Mutex;
use wasmtime_wasi_http::WasiBody;

use super::{concurrency_limit::Permits, connections::Connection, request_body::Upload};
use crate::db::Flow;

/// A tenth of the CPU time, by measurement with 500 clients.
const RESPONSES_PER_SECOND_AND_CORE: u32 = 100;
/// Several hundred clients that are all refused at once, and then wait as `retry-after` says, are not delayed.
const BURST: Duration = Duration::from_secs(3);
/// Shorter than the timeouts of clients.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Above this number, flows without recent errors are removed.
const MAX_FLOWS: usize = 10_000;

/// Errors of the API are a few hundred bytes, pages of the dashboard some kilobytes.
const MAX_HELD_BYTES: usize = 64 * 1024;

/// When the next error response of each flow is due. This is the generic cell rate algorithm (ITU-T I.371).
pub(super) struct ErrorPace {
    interval: Duration,
    due: Mutex<HashMap<Flow, Instant>>,
}

impl Default for ErrorPace {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let rate = RESPONSES_PER_SECOND_AND_CORE.saturating_mul(u32::try_from(cores).unwrap_or(u32::MAX));
        Self { interval: Duration::from_secs(1) / rate, due: Mutex::default() }
    }
}

impl ErrorPace {
    /// An error response when its flow may have the next one. Meanwhile the request holds no place, and no instance of
    /// a component.
    pub(super) async fn delay(
        &self,
        flow: Flow,
        response: Response<WasiBody>,
        connection: &Connection,
        upload: &Upload,
    ) -> Response<WasiBody> {
        let time = self.time(flow, Instant::now());
        if time.is_zero() {
            return response;
        }
        let (response, is_held) = hold(response).await;
        if is_held {
            upload.set_permits(Permits::default());
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                () = connection.draining() => {}
            }
        }
        response
    }

    /// By how much an error response that is ready `now` is delayed.
    fn time(&self, flow: Flow, now: Instant) -> Duration {
        let mut flows = self.due.lock();
        if flows.len() >= MAX_FLOWS {
            flows.retain(|_, due| *due > now);
        }
        let due = flows.entry(flow).or_insert(now);
        *due = (*due).max(now) + self.interval;
        let latest = now + BURST + MAX_DELAY;
        *due = (*due).min(latest);
        due.saturating_duration_since(now + BURST)
    }
}

/// A response that the component has sent completely, so that its instance is free, and whether it could be: a body
/// over [`MAX_HELD_BYTES`] is passed on while it arrives.
async fn hold(response: Response<WasiBody>) -> (Response<WasiBody>, bool) {
    let (head, mut body) = response.into_parts();
    let (mut frames, mut bytes) = (Vec::new(), 0);
    while bytes <= MAX_HELD_BYTES {
        let Some(frame) = body.frame().await else {
            let body = StreamBody::new(stream::iter(frames)).boxed_unsync();
            return (Response::from_parts(head, body), true);
        };
        bytes += frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len);
        frames.push(frame);
    }
    let body = StreamBody::new(stream::iter(frames).chain(BodyStream::new(body))).boxed_unsync();
    (Response::from_parts(head, body), false)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    const FLOW: u8 = 1;

    fn pace(interval_ms: u64) -> ErrorPace {
        ErrorPace { interval: Duration::from_millis(interval_ms), due: Mutex::default() }
    }

    #[test]
    fn a_flow_has_a_burst_and_then_a_rate() {
        let (pace, now) = (pace(500), Instant::now());
        let delays = (0..9).map(|_| pace.time(Flow::of(FLOW), now).as_millis());
        assert_eq!(delays.collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 500, 1_000, 1_500]);
        // The same flow has a part of its burst again later.
        assert_eq!(pace.time(Flow::of(FLOW), now + Duration::from_secs(2)), Duration::ZERO);
        assert_eq!(pace.time(Flow::of(2), now), Duration::ZERO);
    }

    #[test]
    fn a_delay_is_bounded() {
        let (pace, now) = (pace(100), Instant::now());
        let longest = (0..1_000).map(|_| pace.time(Flow::of(FLOW), now)).max();
        assert_eq!(longest, Some(MAX_DELAY));
        assert_eq!(pace.time(Flow::of(FLOW), now + BURST + MAX_DELAY), Duration::ZERO);
    }

    #[test]
    fn the_number_of_flows_is_bounded() {
        let (pace, now) = (pace(100), Instant::now());
        for flow in 0..MAX_FLOWS {
            pace.time(Flow::of(flow), now);
        }
        pace.time(Flow::of("last"), now + BURST);
        assert_eq!(pace.due.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_held_body_is_complete() {
        for (bytes, is_held) in [(0, true), (MAX_HELD_BYTES, true), (10 * MAX_HELD_BYTES, false)] {
            let body = Full::new(Bytes::from(vec![b'x'; bytes])).map_err(|never| match never {});
            let parts = StreamBody::new(BodyStream::new(body.boxed_unsync()));
            let (response, held) = hold(Response::new(parts.boxed_unsync())).await;
            assert_eq!(held, is_held, "{bytes} bytes");
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), bytes);
        }
    }
}
