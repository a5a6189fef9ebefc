//! Receives the bodies of requests, under limits of time and of the bytes that have arrived.
//!
//! Invariant: no client holds a place, or an instance's memory for its body, while its body arrives. What a client
//! announces takes nothing.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use platen_shared::limits::MAX_BODY_BYTES;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    buffered_body::BufferedBody,
    client_address::ClientAddress,
    concurrency_limit::{ConcurrencyLimit, Permits},
    connections::{Activity, Connection},
    pace::{Pace, PaceLimits},
    partial_bodies::{Held, Owner, PartialBodies, PartialBody},
    server_error::ServerError,
    shared_budget::SharedBudget,
};
use crate::db::Flow;

/// A larger body does not wait for its end before the component gets the request.
pub(super) const MAX_SMALL_BODY_BYTES: u64 = 1024 * 1024;
/// The largest body at 280 kB/s; nearly all are far smaller.
const PACE: PaceLimits = PaceLimits {
    total_timeout: Duration::from_mins(2),
    pause_timeout: Duration::from_secs(15),
    grace: Duration::from_secs(10),
    min_bytes_per_second: 4 * 1024,
};
/// For the first mebibyte of all bodies, and again for the rest of them, so that large bodies take nothing from small
/// ones.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Requests with large bodies that a component has accepted. Each has an instance, with a few megabytes of memory.
const MAX_WAITING_INSTANCES: u64 = 64;

/// The limits of all bodies together.
pub(super) struct BodyLimits {
    first_bytes: Arc<SharedBudget<ClientAddress>>,
    further_bytes: Arc<SharedBudget<ClientAddress>>,
    /// By the credentials of their requests.
    waiting_instances: Arc<SharedBudget<Flow>>,
    partial_bodies: Arc<PartialBodies>,
}

impl BodyLimits {
    pub(super) fn new(is_limited_per_address: bool) -> Self {
        let bytes = || SharedBudget::new(MAX_BYTES, is_limited_per_address.then_some(MAX_BYTES / 4));
        Self {
            first_bytes: bytes(),
            further_bytes: bytes(),
            waiting_instances: SharedBudget::new(MAX_WAITING_INSTANCES, Some(MAX_WAITING_INSTANCES / 2)),
            partial_bodies: Arc::default(),
        }
    }

    /// Appends what has arrived to a body.
    async fn push(
        &self,
        body: &mut BufferedBody,
        data: Bytes,
        what: Held,
        connection: &Connection,
        partial: Option<&PartialBody>,
    ) -> Result<(), ServerError> {
        let bytes = data.len() as u64;
        self.partial_bodies
            .take(what, Owner::Address(connection.address()), || body.push(data.clone()))
            .await?;
        if let Some(partial) = partial {
            partial.hold(what, bytes);
        }
        Ok(())
    }
}

/// A body as far as it was received.
pub(super) enum Received {
    Small(BufferedBody),
    Large(LargeBody),
}

/// A body over [`MAX_SMALL_BODY_BYTES`] whose rest is not received yet.
pub(super) struct LargeBody {
    first: BufferedBody,
    rest: Incoming,
    /// `None` if nothing of it has been read.
    arriving: Option<Arriving>,
}

struct Arriving {
    pace: Pace,
    partial: PartialBody,
}

/// Receives a body to its end, or up to [`MAX_SMALL_BODY_BYTES`]. One that is announced to be larger is not read.
pub(super) async fn receive(
    mut body: Incoming,
    connection: &Connection,
    limits: &BodyLimits,
) -> Result<Received, ServerError> {
    let mut first = BufferedBody::new(limits.first_bytes.part(connection.address()));
    if body.is_end_stream() {
        return Ok(Received::Small(first));
    }
    if body.size_hint().lower() > MAX_SMALL_BODY_BYTES {
        return Ok(Received::Large(LargeBody { first, rest: body, arriving: None }));
    }
    let _ = connection.begin(Activity::ReceivingBody);
    let mut pace = Pace::begin(&PACE);
    let mut partial = None;
    while let Some(data) = next_data(&mut body, &mut pace, partial.as_ref()).await? {
        limits.push(&mut first, data, Held::FirstBytes, connection, partial.as_ref()).await?;
        // Most bodies arrive at once.
        if partial.is_none() && !body.is_end_stream() {
            let begun = limits.partial_bodies.begin(connection.address());
            begun.hold(Held::FirstBytes, first.bytes());
            partial = Some(begun);
        }
        if first.bytes() > MAX_SMALL_BODY_BYTES {
            let _ = connection.begin(Activity::Responding);
            let arriving = partial.map(|partial| Arriving { pace, partial });
            return Ok(Received::Large(LargeBody { first, rest: body, arriving }));
        }
    }
    let _ = connection.begin(Activity::Responding);
    Ok(Received::Small(first.completed()))
}

async fn next_data(
    body: &mut Incoming,
    pace: &mut Pace,
    partial: Option<&PartialBody>,
) -> Result<Option<Bytes>, ServerError> {
    let given_up = async {
        match partial {
            Some(partial) => partial.given_up().await,
            None => std::future::pending().await,
        }
    };
    let mut given_up = std::pin::pin!(given_up);
    loop {
        let frame = tokio::select! {
            biased;
            () = &mut given_up => return Err(ServerError::TooManyRequests),
            frame = timeout_at(pace.deadline(), body.frame()) => frame.map_err(|_| ServerError::BodyTimedOut)?,
        };
        let Some(frame) = frame else { return Ok(None) };
        // Trailers have no meaning for a component.
        let Ok(data) = frame.map_err(|_| ServerError::InvalidBody)?.into_data() else { continue };
        pace.advance(data.len());
        return Ok(Some(data));
    }
}

/// What the server and the body of a request share while a component handles it.
#[derive(Default)]
pub(super) struct Upload {
    permits: Mutex<Permits>,
    failure: OnceLock<ServerError>,
    responded: CancellationToken,
    is_complete: AtomicBool,
}

impl Upload {
    pub(super) fn set_permits(&self, permits: Permits) {
        *self.permits.lock() = permits;
    }

    /// Why the body could not be received.
    pub(super) fn failure(&self) -> Option<ServerError> {
        self.failure.get().copied()
    }

    /// The body has been received to its end.
    pub(super) fn set_complete(&self) {
        self.is_complete.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// The component has responded: the rest of the body is not received.
    pub(super) fn responded(&self) {
        self.responded.cancel();
    }
}

/// What is needed to receive the rest of a large body.
pub(super) struct Reception {
    pub(super) upload: Arc<Upload>,
    pub(super) connection: Arc<Connection>,
    pub(super) limits: Arc<BodyLimits>,
    pub(super) concurrency_limit: Arc<ConcurrencyLimit>,
    pub(super) flow: Flow,
    /// That of the credentials, which are valid if the component reads the body.
    pub(super) credentials: Flow,
}

impl LargeBody {
    /// The body for the component: what has arrived, and the rest when all of it has arrived. When the component reads
    /// that, the request's permits are returned until then.
    pub(super) fn into_body(self, reception: Reception) -> WasiBody {
        let Self { first, rest, arriving } = self;
        let received = first.bytes();
        let first = first.completed();
        let rest = Box::pin(async move {
            let upload = Arc::clone(&reception.upload);
            let receiving = reception.receive(rest, arriving, received);
            match upload.responded.run_until_cancelled(receiving).await {
                None => Ok(None),
                Some(Ok(rest)) => Ok(Some(rest)),
                Some(Err(error)) => {
                    let _ = upload.failure.set(error);
                    Err(Error::ConnectionReadTimeout)
                }
            }
        });
        GatedBody { available: first, rest: Some(rest) }.boxed_unsync()
    }
}

impl Reception {
    async fn receive(
        self,
        mut body: Incoming,
        arriving: Option<Arriving>,
        received: u64,
    ) -> Result<BufferedBody, ServerError> {
        let (address, limits) = (self.connection.address(), &self.limits);
        let mut waiting = limits.waiting_instances.part(self.credentials);
        let owner = Owner::Credentials(self.credentials);
        limits.partial_bodies.take(Held::Instance, owner, || waiting.grow(1)).await?;
        let Arriving { mut pace, partial } = arriving.unwrap_or_else(|| Arriving {
            pace: Pace::begin(&PACE),
            partial: limits.partial_bodies.begin(address),
        });
        partial.hold_instance(self.credentials);
        self.upload.set_permits(Permits::default());
        let _ = self.connection.begin(Activity::ReceivingBody);
        let mut rest = BufferedBody::new(limits.further_bytes.part(address));
        loop {
            let Some(data) = next_data(&mut body, &mut pace, Some(&partial)).await? else {
                self.upload.set_complete();
                break;
            };
            limits.push(&mut rest, data, Held::FurtherBytes, &self.connection, Some(&partial)).await?;
            // The component refuses it without reading further.
            if received + rest.bytes() > MAX_BODY_BYTES as u64 {
                break;
            }
        }
        drop(partial);
        let _ = self.connection.begin(Activity::Responding);
        let permits = self.concurrency_limit.acquire(self.flow, received + rest.bytes()).await?;
        self.upload.set_permits(permits);
        Ok(rest.completed())
    }
}

type Rest = Pin<Box<dyn Future<Output = Result<Option<BufferedBody>, Error>> + Send>>;

/// A body whose rest follows when it is complete.
struct GatedBody {
    available: BufferedBody,
    rest: Option<Rest>,
}

impl Body for GatedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            if let Some(data) = self.available.pop() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
            let received = ready!(rest.as_mut().poll(context));
            self.rest = None;
            match received {
                Ok(Some(rest)) => self.available = rest,
                Ok(None) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.available.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
