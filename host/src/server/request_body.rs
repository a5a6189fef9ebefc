//! Receives the bodies of requests.
//!
//! Invariant: no instance of a component waits for a body of up to [`MAX_SMALL_BODY_BYTES`]. For a larger one a component
//! may decide by its head; [`MAX_UPLOADS`] are received at once, and what a client announces takes no memory. What remains
//! of a body after the response is read and discarded: a connection that is closed with unread bytes is reset, and
//! a client that is still writing may lose the response.

use std::{
    future::ready,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use platen_shared::limits::MAX_BODY_BYTES;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    exchange::Exchange,
    limits::{AddressLimit, AddressPermit, BODY_TIMEOUT, ConcurrencyLimit, WAIT_TIMEOUT},
    server_error::ServerError,
};

const MIB: usize = 1024 * 1024;
/// A larger body is not received before a component gets its request.
const MAX_SMALL_BODY_BYTES: usize = MIB;
/// The size of all bodies up to that size that arrive or wait.
const MAX_SMALL_BODIES_BYTES: usize = 256 * MIB;
/// Larger bodies that are received at once. Each has an instance with a few megabytes of memory, and up to 32 MiB here, or
/// twice that while its buffer grows.
const MAX_UPLOADS: usize = 24;
const MAX_UPLOADS_PER_ADDRESS: usize = 4;
/// The size of all larger bodies in components. A component holds a body about four times, so this is a gigabyte.
const MAX_MIB_IN_COMPONENTS: usize = 256;

/// A body fails after [`WAIT_TIMEOUT`] and the time of what has arrived at the lowest rate.
const MIN_BYTES_PER_MILLISECOND: usize = 4;
const MAX_DISCARDED_BYTES: usize = 2 * MAX_BODY_BYTES;

/// The limits of all bodies together.
pub(super) struct BodyLimits {
    small_bytes: Arc<Semaphore>,
    uploads: Arc<AddressLimit>,
    mib_in_components: Arc<Semaphore>,
}

impl BodyLimits {
    pub(super) fn new(are_addresses_limited: bool) -> Self {
        let per_address = are_addresses_limited.then_some(MAX_UPLOADS_PER_ADDRESS);
        Self {
            small_bytes: Arc::new(Semaphore::new(MAX_SMALL_BODIES_BYTES)),
            uploads: AddressLimit::new(MAX_UPLOADS, per_address),
            mib_in_components: Arc::new(Semaphore::new(MAX_MIB_IN_COMPONENTS)),
        }
    }
}

/// A body that arrives. What has not been read of it is discarded when this is dropped.
pub(super) struct ArrivingBody {
    /// `None` when nothing more arrives.
    body: Option<Incoming>,
    /// The client waits for a response before it sends the body.
    expects_continue: bool,
    began: Instant,
    received: usize,
    exchange: Arc<Exchange>,
}

impl ArrivingBody {
    pub(super) fn new(body: Incoming, headers: &HeaderMap, exchange: Arc<Exchange>) -> Self {
        let mut this = Self {
            body: Some(body),
            expects_continue: headers.contains_key(header::EXPECT),
            began: Instant::now(),
            received: 0,
            exchange,
        };
        this.check_end();
        this
    }

    fn check_end(&mut self) {
        if self.body.as_ref().is_none_or(Body::is_end_stream) {
            self.body = None;
            self.exchange.is_received.store(true, Ordering::Relaxed);
        }
    }

    fn deadline(&self) -> Instant {
        let earned = Duration::from_millis((self.received / MIN_BYTES_PER_MILLISECOND) as u64);
        self.began + (WAIT_TIMEOUT + earned).min(BODY_TIMEOUT)
    }

    /// The next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ServerError> {
        let deadline = self.deadline();
        while let Some(body) = &mut self.body {
            let frame = timeout_at(deadline, body.frame()).await.map_err(|_| ServerError::BodyTimedOut)?;
            match frame {
                None => self.body = None,
                Some(Err(_)) => {
                    self.body = None;
                    return Err(ServerError::InvalidBody);
                }
                // Trailers have no meaning for a component.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.received += data.len();
                        self.check_end();
                        return Ok(Some(data));
                    }
                }
            }
        }
        self.check_end();
        Ok(None)
    }

    /// Receives the body up to its end, or until more than [`MAX_SMALL_BODY_BYTES`] are received or announced. The component
    /// gets the end of a body with a password in turns of `hashing`.
    pub(super) async fn receive(
        mut self,
        limits: &Arc<BodyLimits>,
        hashing: Option<ConcurrencyLimit>,
    ) -> Result<RequestBody, ServerError> {
        let mut available = BytesMut::new();
        let mut memory = None;
        let announced = self.body.as_ref().map_or(0, |body| body.size_hint().lower());
        if announced <= MAX_SMALL_BODY_BYTES as u64 {
            while available.len() <= MAX_SMALL_BODY_BYTES {
                let Some(data) = self.next().await? else {
                    self.exchange.await_hashing_permit(hashing.as_ref()).await?;
                    let bytes = Some(available.len());
                    let body = body(available, memory, None::<std::future::Pending<_>>);
                    return Ok(RequestBody { body, bytes, waited: Duration::ZERO });
                };
                add_permits(&mut memory, &limits.small_bytes, data.len())?;
                available.extend_from_slice(&data);
            }
        }
        let arrived = Instant::now();
        let upload = limits.uploads.acquire(self.exchange.client).await?;
        let body = body(available, memory, Some(self.rest(Arc::clone(limits), upload, hashing)));
        Ok(RequestBody { body, bytes: None, waited: arrived.elapsed() })
    }

    /// Receives the rest of an upload, and waits until components have memory for it.
    async fn rest(
        mut self,
        limits: Arc<BodyLimits>,
        upload: AddressPermit,
        hashing: Option<ConcurrencyLimit>,
    ) -> Result<BytesMut, Error> {
        let exchange = Arc::clone(&self.exchange);
        let receiving = async {
            self.began = Instant::now();
            let mut rest = BytesMut::new();
            // The component refuses a larger one without reading further.
            while self.received <= MAX_BODY_BYTES
                && let Some(data) = self.next().await?
            {
                rest.extend_from_slice(&data);
            }
            let mib = u32::try_from(self.received.div_ceil(MIB)).unwrap_or(u32::MAX);
            let permits = Arc::clone(&limits.mib_in_components).acquire_many_owned(mib);
            let permits = timeout(WAIT_TIMEOUT, permits).await.ok().and_then(Result::ok);
            *exchange.upload_permits.lock() = Some(permits.ok_or(ServerError::TooManyRequests)?);
            drop(upload);
            exchange.await_hashing_permit(hashing.as_ref()).await?;
            Ok(rest)
        };
        // After the response nothing is passed on.
        match exchange.responded.run_until_cancelled(receiving).await {
            None => Ok(BytesMut::new()),
            Some(received) => received.map_err(|error| {
                let _ = exchange.body_error.set(error);
                Error::ConnectionReadTimeout
            }),
        }
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        // A body of which the client sends nothing yet is not asked for.
        let Some(mut body) = self.body.take().filter(|_| !self.expects_continue || self.received > 0) else {
            return;
        };
        let draining = self.exchange.connection.draining.clone();
        tokio::spawn(async move {
            let discard = async {
                let mut discarded = 0;
                while discarded < MAX_DISCARDED_BYTES
                    && let Some(Ok(frame)) = body.frame().await
                {
                    discarded += frame.data_ref().map_or(0, Bytes::len);
                }
            };
            let _ = draining.run_until_cancelled(timeout(BODY_TIMEOUT, discard)).await;
        });
    }
}

pub(super) struct RequestBody {
    pub(super) body: WasiBody,
    /// The size of a body that has arrived.
    pub(super) bytes: Option<usize>,
    /// How long an upload has waited for others.
    pub(super) waited: Duration,
}

/// Takes as many permits as there are bytes.
fn add_permits(
    permits: &mut Option<OwnedSemaphorePermit>,
    semaphore: &Arc<Semaphore>,
    bytes: usize,
) -> Result<(), ServerError> {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let added = Arc::clone(semaphore).try_acquire_many_owned(bytes);
    let added = added.map_err(|_| ServerError::TooManyRequests)?;
    match permits {
        Some(permits) => permits.merge(added),
        None => *permits = Some(added),
    }
    Ok(())
}

/// A body as a component reads it: what has arrived, and the rest of a large one when all of that has arrived. It has its
/// permits for memory until it is dropped.
fn body<R>(available: BytesMut, memory: Option<OwnedSemaphorePermit>, rest: Option<R>) -> WasiBody
where
    R: Future<Output = Result<BytesMut, Error>> + Send + 'static,
{
    let pieces = stream::once(ready(Ok(available))).chain(stream::iter(rest).then(|rest| rest));
    let pieces = pieces.try_filter(|data| ready(!data.is_empty()));
    let frames = pieces.map_ok(move |data| {
        let _until_dropped = &memory;
        Frame::data(data.freeze())
    });
    StreamBody::new(frames).boxed_unsync()
}
