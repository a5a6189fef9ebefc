//! A component's outgoing HTTP requests.
//!
//! Invariant: a request leaves only for a host its component may reach, is never sent twice, and
//! ends when the client for whom it was made disconnects: a job at once, by its cancellation. An error
//! says whether the request may have been seen: [`Error::ConnectionRefused`],
//! [`Error::ConnectionTimeout`], [`Error::DnsError`], [`Error::DestinationUnavailable`] and an
//! [`Error::InternalError`] of [`wire::DISCONNECTED_UNSENT`] mean that no byte of it was sent.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use platen_shared::wire;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::WaitForCancellationFutureOwned;
use wasmtime::component::{Accessor, HasData, Resource};
use wasmtime_wasi::TrappableError;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttp, WasiHttpCtxView, WasiHttpHooks, WasiHttpView as _,
    p3::{
        Request, Response,
        bindings::http::{client::HostWithStore, types::ErrorCode},
    },
};

use super::{
    Grants,
    cancellation::{Cancellation, disconnected},
    state::{HangUp, State},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Where the component sets none: longer than any render, so that nothing waits for ever.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// Shorter than what servers and proxies keep, so that a request is not sent into a connection
/// that is just closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to the farm, kept alive between requests; a cheap handle.
#[derive(Clone)]
pub(super) struct Client(legacy::Client<HttpConnector, WasiBody>);

impl Client {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            // The component set the header, and the rule was checked against the same authority.
            .set_host(false)
            // A request that was never written to a connection that died may go to another one;
            // one that was is not repeated.
            .retry_canceled_requests(true)
            .build(connector);
        Self(client)
    }

    async fn send(&self, request: http::Request<WasiBody>) -> Result<http::Response<Incoming>, Error> {
        self.0.request(request).await.map_err(|error| map_error(&error))
    }
}

/// What the HTTP implementation asks of this server, for one instance.
pub(super) struct Hooks {
    client: Client,
    grants: Arc<Grants>,
    /// The hang-up of the request on whose behalf the next call is made.
    hang_up: HangUp,
}

impl Hooks {
    pub(super) fn new(client: Client, grants: Arc<Grants>) -> Self {
        Self { client, grants, hang_up: HangUp::new() }
    }
}

/// A response, and what moves its connection while its body is read.
pub(super) type Sent =
    Result<(http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        if !self.grants.allowed_hosts.allows(request.uri()) {
            tracing::warn!(
                component = self.grants.id,
                host = request.uri().authority().map(http::uri::Authority::host),
                "a component asked for a host that its allowed_outbound_hosts do not name"
            );
            return Box::new(async { Err(Error::HttpRequestDenied) });
        }
        let (client, hang_up) = (self.client.clone(), self.hang_up.clone());
        Box::new(async move {
            if hang_up.is_cancelled() {
                return Err(disconnected(wire::DISCONNECTED_UNSENT));
            }
            let options = options.unwrap_or_default();
            let between_bytes = options.between_bytes_timeout.unwrap_or(DEFAULT_TIMEOUT);
            let cancellation = Cancellation::of(&request);
            let mut exchange = Box::pin(send(client.clone(), request, options));
            match (hang_up.run_until_cancelled(&mut exchange).await, cancellation) {
                (Some(exchanged), _) => {
                    let (response, io) = exchanged?;
                    let gone = hang_up.cancelled_owned();
                    Ok((response.map(|body| Relayed::new(body, between_bytes, gone).boxed_unsync()), io))
                }
                (None, Some(cancellation)) => {
                    let send = |cancel| send(client, cancel, RequestOptions::default());
                    cancellation.carry_out(exchange, send).await
                }
                (None, None) => Err(disconnected(wire::DISCONNECTED)),
            }
        })
    }
}

async fn send(client: Client, mut request: http::Request<WasiBody>, options: RequestOptions) -> Sent {
    if request.uri().scheme() == Some(&http::uri::Scheme::HTTPS) {
        // Farms behind TLS: a connection each, by the implementation Wasmtime comes with.
        let (response, io) = wasmtime_wasi_http::default_send_request(request, Some(options)).await?;
        return Ok((response.map(BodyExt::boxed_unsync), Box::new(io)));
    }
    // Hop-by-hop headers of ours would end the kept connection.
    request.headers_mut().remove(http::header::CONNECTION);
    let first_byte = options.first_byte_timeout.unwrap_or(DEFAULT_TIMEOUT);
    let response =
        timeout(first_byte, client.send(request)).await.map_err(|_| Error::ConnectionReadTimeout)??;
    let body = |body: Incoming| body.map_err(Error::Hyper).boxed_unsync();
    Ok((response.map(body), Box::new(async { Ok(()) })))
}

/// The error of a request that got no answer.
fn map_error(error: &legacy::Error) -> Error {
    tracing::warn!(error = error as &dyn std::error::Error, "a component's request failed");
    if !error.is_connect() {
        return Error::ConnectionTerminated;
    }
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        // The connector tells this in words only.
        if error.to_string() == "dns error" {
            return Error::DnsError { rcode: None, info_code: None };
        }
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return Error::ConnectionRefused,
            Some(io::ErrorKind::TimedOut) => return Error::ConnectionTimeout,
            _ => cause = error.source(),
        }
    }
    Error::DestinationUnavailable
}

/// A response body on its way to the component: fails when it stalls, or when the component's
/// own client is gone, and lets go of the connection then.
struct Relayed<B> {
    body: Option<B>,
    patience: Duration,
    stalled: Pin<Box<Sleep>>,
    gone: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<B> Relayed<B> {
    fn new(body: B, patience: Duration, gone: WaitForCancellationFutureOwned) -> Self {
        Self { body: Some(body), patience, stalled: Box::pin(sleep(patience)), gone: Box::pin(gone) }
    }
}

impl<B: Body<Data = Bytes, Error = Error> + Unpin> Body for Relayed<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            let deadline = Instant::now() + self.patience;
            self.stalled.as_mut().reset(deadline);
            return Poll::Ready(frame);
        }
        let error = if self.gone.as_mut().poll(context).is_ready() {
            Error::ConnectionTerminated
        } else if self.stalled.as_mut().poll(context).is_ready() {
            Error::ConnectionReadTimeout
        } else {
            return Poll::Pending;
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

/// `wasi:http/client`, which finds out for whom a request is made before it is sent.
pub(super) struct Outgoing;

impl HasData for Outgoing {
    type Data<'a> = WasiHttpCtxView<'a>;
}

impl HostWithStore<State> for Outgoing {
    async fn send(
        store: &Accessor<State, Self>,
        request: Resource<Request>,
    ) -> Result<Resource<Response>, TrappableError<ErrorCode>> {
        store
            .with(|mut access| -> wasmtime::Result<()> {
                use wasmtime::AsContextMut as _;
                let mut context = access.as_context_mut();
                // The last one is the task of the export that the request came in by.
                let task = context.async_call_stack()?.last();
                let state = context.data_mut();
                state.hooks.hang_up = state.hang_up_of(task);
                Ok(())
            })
            .map_err(TrappableError::trap)?;
        // Runs up to the hook before anything else runs in this store.
        <WasiHttp as HostWithStore<State>>::send(&store.with_getter::<WasiHttp>(State::http), request).await
    }
}
