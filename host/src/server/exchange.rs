//! One request and its response: what its parts share, and the body of the response while it is sent.
//!
//! Invariant: a response that is dropped before its end reports to the component that its client has disconnected.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use platen_program::RepeatedWarning;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use tokio_util::sync::CancellationToken;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    connection::Connection,
    limits::{ConcurrencyLimit, Permit, WAIT_TIMEOUT},
    request_head::ClientAddress,
    server_error::ServerError,
};
use crate::{db::FlowId, metrics::Metrics, runtime::ClientDisconnect};

pub(super) struct Exchange {
    pub(super) connection: Arc<Connection>,
    pub(super) client: ClientAddress,
    pub(super) client_disconnect: ClientDisconnect,
    /// The component has responded.
    pub(super) responded: CancellationToken,
    /// The body of the request has been received to its end.
    pub(super) is_received: AtomicBool,
    /// Why the body could not be received.
    pub(super) body_error: OnceLock<ServerError>,
    /// The permit for the memory of a large body in the component.
    pub(super) upload_permits: Mutex<Option<OwnedSemaphorePermit>>,
    /// The right to have a password hashed, from the end of the body on.
    pub(super) hashing_permit: Arc<Mutex<Option<Permit>>>,
}

impl Exchange {
    pub(super) fn new(connection: Arc<Connection>, client: ClientAddress) -> Self {
        Self {
            connection,
            client,
            client_disconnect: ClientDisconnect::new(),
            responded: CancellationToken::new(),
            is_received: AtomicBool::new(false),
            body_error: OnceLock::new(),
            upload_permits: Mutex::default(),
            hashing_permit: Arc::default(),
        }
    }

    /// Waits for the right to have a password hashed, if the request has one.
    pub(super) async fn await_hashing_permit(
        &self,
        hashing: Option<&ConcurrencyLimit>,
    ) -> Result<(), ServerError> {
        let Some(hashing) = hashing else { return Ok(()) };
        let permit = hashing.acquire(FlowId::of(self.client)).await?;
        *self.hashing_permit.lock() = Some(permit);
        Ok(())
    }
}

/// A response, from its request's arrival to its last byte.
pub(super) struct ResponseBody {
    body: WasiBody,
    /// Bytes still to come, where the component announced how many.
    remaining: Option<u64>,
    complete: bool,
    /// Kept until the response is sent.
    pub(super) permit: Option<Permit>,
    exchange: Arc<Exchange>,
    metrics: Arc<Metrics>,
    unsent: Option<Arc<Transfer>>,
}

impl ResponseBody {
    /// Counts a request in flight. If this is dropped without a body, the client has disconnected.
    pub(super) fn begin(exchange: Arc<Exchange>, metrics: Arc<Metrics>) -> Self {
        metrics.in_flight.inc();
        exchange.connection.has_request.store(true, Ordering::Release);
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        Self { body, remaining: None, complete: false, permit: None, exchange, metrics, unsent: None }
    }

    /// Gives the exchange a body. One that is not `sent`, as the response to a HEAD request, is complete with its head.
    pub(super) fn with(mut self, body: WasiBody, sent: bool, unsent: &UnsentResponses) -> Self {
        self.complete = !sent || body.is_end_stream();
        self.remaining = body.size_hint().exact();
        if let Some(bytes) = self.remaining.filter(|_| !self.complete) {
            self.unsent = unsent.begin(bytes, &self.exchange.connection.aborted);
        }
        self.body = body;
        self
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        if !self.complete {
            self.metrics.client_disconnects.inc();
            self.exchange.client_disconnect.cancel();
        }
        self.exchange.connection.has_request.store(false, Ordering::Release);
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let ended = match &frame {
            // An error is not caused by the client.
            None | Some(Err(_)) => true,
            Some(Ok(_)) => self.body.is_end_stream(),
        };
        if let (Some(remaining), Some(Ok(frame))) = (&mut self.remaining, &frame) {
            *remaining = remaining.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        // A body of known length is not polled for its end.
        self.complete = ended || self.remaining == Some(0);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

const MAX_UNSENT_BYTES: u64 = 1024 * 1024 * 1024;
/// Smaller responses are not counted.
const MIN_COUNTED_BYTES: u64 = 256 * 1024;

/// The files that wait for slow readers. A file stays in the memory of the farm until all of it has been sent. When there
/// are too many bytes, transfers are aborted that have had their [`WAIT_TIMEOUT`], the oldest one first.
#[derive(Default)]
pub(super) struct UnsentResponses {
    /// The oldest one first.
    transfers: Mutex<Vec<Weak<Transfer>>>,
    aborted: RepeatedWarning,
}

/// A response that is being sent until this is dropped.
struct Transfer {
    bytes: u64,
    began: Instant,
    abort: CancellationToken,
}

impl UnsentResponses {
    /// Counts a response, and aborts other ones if there are too many bytes.
    fn begin(&self, bytes: u64, abort: &CancellationToken) -> Option<Arc<Transfer>> {
        if bytes < MIN_COUNTED_BYTES {
            return None;
        }
        let transfer = Arc::new(Transfer { bytes, began: Instant::now(), abort: abort.clone() });
        let mut transfers = self.transfers.lock();
        transfers.push(Arc::downgrade(&transfer));
        let mut unsent: VecDeque<_> = transfers.iter().filter_map(Weak::upgrade).collect();
        while unsent.iter().map(|it| it.bytes).sum::<u64>() > MAX_UNSENT_BYTES
            && let Some(oldest) = unsent.pop_front_if(|oldest| oldest.began.elapsed() >= WAIT_TIMEOUT)
        {
            if let Some(count) = self.aborted.record() {
                tracing::warn!(count, "aborting slow transfers: too many bytes wait for clients");
            }
            oldest.abort.cancel();
        }
        *transfers = unsent.iter().map(Arc::downgrade).collect();
        Some(transfer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_slow_transfers_are_aborted() {
        let unsent = UnsentResponses::default();
        let tokens: [CancellationToken; 4] = Default::default();
        let begin = |index: usize| unsent.begin(MAX_UNSENT_BYTES / 3, &tokens[index]);
        let are_aborted = || tokens.each_ref().map(CancellationToken::is_cancelled);
        let mut transfers = Vec::new();
        for index in [0, 1, 2] {
            transfers.push(begin(index));
            sleep(Duration::from_secs(4)).await;
        }
        transfers.push(begin(3));
        assert_eq!(are_aborted(), [true, false, false, false]);
        // The oldest of the others has been sent for eight seconds only.
        transfers.push(begin(3));
        assert_eq!(are_aborted(), [true, false, false, false]);
        sleep(Duration::from_secs(3)).await;
        transfers.push(begin(3));
        assert_eq!(are_aborted(), [true, true, false, false]);
        drop(transfers);
        assert!(unsent.transfers.lock().iter().all(|transfer| transfer.strong_count() == 0));
        let small = unsent.begin(MIN_COUNTED_BYTES - 1, &tokens[2]);
        assert!(small.is_none());
    }
}
