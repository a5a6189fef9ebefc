//! Checks and sends the HTTP requests of one component instance.
//!
//! Invariant: a request is sent only to an allowed host, and ends when the client for whom it is made
//! disconnects; the farm of this process says how the job ended. An [`Error::InternalError`] of
//! [`wire::DISCONNECTED_UNSENT`] means that no byte of the request was sent.

use std::{pin::Pin, sync::Arc, task, task::Poll, time::Duration};

use bytes::Bytes;
use http::HeaderName;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use platen_program::telemetry::{self, Context, OpenTelemetrySpanExt as _, Status};
use platen_shared::wire;
use tokio::time::{Instant, Sleep, sleep};
use tracing::{Span, info_span};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use super::{
    ClientDisconnect, Grants, RESPONSE_TIMEOUT,
    client::{Client, Exchange},
};

pub(super) struct Hooks {
    client: Client,
    grants: Arc<Grants>,
    /// Disconnect and span of the request on whose behalf the next call is made.
    pub(super) client_disconnect: ClientDisconnect,
    pub(super) trace: Option<Context>,
}

impl Hooks {
    pub(super) fn new(client: Client, grants: Arc<Grants>) -> Self {
        Self { client, grants, client_disconnect: ClientDisconnect::new(), trace: None }
    }
}

/// The error of an outgoing request whose client has disconnected; `reason` is one of the constants
/// of [`wire`], by which the component recognises it.
fn disconnected(reason: &str) -> Error {
    Error::InternalError(Some(reason.to_owned()))
}

/// A span of the request, which becomes the parent of the farm's.
fn begin_span(request: &mut http::Request<WasiBody>, trace: &Context) -> Span {
    let span = info_span!(
        target: telemetry::TARGET,
        "request to a farm",
        otel.name = format!("{} job", request.method()),
        otel.kind = "client",
        http.request.method = request.method().as_str(),
        server.address = request.uri().host(),
    );
    let span = telemetry::part_of(trace, span);
    if let Some(trace) = telemetry::context(&span) {
        let headers = request.headers_mut();
        telemetry::inject(&trace, headers);
        if let Some(traceparent) = headers.get(wire::TRACEPARENT).cloned() {
            headers.insert(HeaderName::from_static(wire::JOB_TRACEPARENT), traceparent);
        }
    }
    span
}

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        mut request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Exchange> + Send> {
        if !self.grants.allowed_hosts.allows(request.uri()) {
            tracing::warn!(
                component = self.grants.id,
                host = request.uri().authority().map(http::uri::Authority::host),
                "a component requested a host that its allowed_outbound_hosts do not list"
            );
            return Box::new(async { Err(Error::HttpRequestDenied) });
        }
        let (client, client_disconnect) = (self.client.clone(), self.client_disconnect.clone());
        let is_own = client.is_for_own_farm(request.uri());
        if is_own {
            request.extensions_mut().insert(client_disconnect.clone());
        }
        let span = self.trace.as_ref().map_or_else(Span::none, |trace| begin_span(&mut request, trace));
        Box::new(async move {
            if client_disconnect.is_cancelled() {
                return Err(disconnected(wire::DISCONNECTED_UNSENT));
            }
            let options = options.unwrap_or_default();
            let idle_timeout = options.between_bytes_timeout.unwrap_or(RESPONSE_TIMEOUT);
            let exchange = client.send(request, options);
            let exchanged = if is_own {
                exchange.await
            } else {
                let exchanged = client_disconnect.run_until_cancelled(exchange).await;
                exchanged.unwrap_or_else(|| Err(disconnected(wire::DISCONNECTED)))
            };
            match &exchanged {
                Ok((response, _)) => {
                    span.set_attribute("http.response.status_code", i64::from(response.status().as_u16()));
                }
                Err(error) => span.set_status(Status::error(error.to_string())),
            }
            drop(span);
            let (response, io) = exchanged?;
            if is_own {
                return Ok((response, io));
            }
            let end = async move {
                client_disconnect.cancelled_owned().await;
                Error::ConnectionTerminated
            };
            let body = |body| BoundedBody::new(body, idle_timeout, end).boxed_unsync();
            Ok((response.map(body), io))
        })
    }
}

/// A body that fails with [`Error::ConnectionReadTimeout`] when no frame arrives for `idle_timeout`, and
/// with the error of `end` when that completes while the body waits for a frame. It is dropped at once then, and with it the
/// connection that it is read from.
struct BoundedBody<B> {
    body: Option<B>,
    idle_timeout: Duration,
    idle: Pin<Box<Sleep>>,
    end: Pin<Box<dyn Future<Output = Error> + Send>>,
}

impl<B> BoundedBody<B> {
    fn new(body: B, idle_timeout: Duration, end: impl Future<Output = Error> + Send + 'static) -> Self {
        Self { body: Some(body), idle_timeout, idle: Box::pin(sleep(idle_timeout)), end: Box::pin(end) }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Error>> + Unpin> Body for BoundedBody<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
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
