//! Checks and sends the HTTP requests of one component instance.
//!
//! Invariant: a request is sent only to the farm, and ends when the client for whom it is made
//! disconnects; the farm of this process says how the job ended. An [`Error::InternalError`] of
//! [`wire::DISCONNECTED_UNSENT`] means that no byte of the request was sent.

use std::{sync::Arc, time::Duration};

use futures::stream;
use http::{HeaderName, Uri};
use http_body_util::{BodyExt as _, StreamBody};
use platen_program::telemetry::{self, Context, OpenTelemetrySpanExt as _, Status};
use platen_shared::{farm_address::FarmAddress, wire};
use tokio::time::timeout;
use tracing::{Span, info_span};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use super::{ClientDisconnect, Grants, RESPONSE_TIMEOUT, client::Client};

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

/// Whether a URI has the scheme, host and port of the farm, as the component reads them, before names are resolved.
fn is_of(farm: &FarmAddress, uri: &Uri) -> bool {
    uri.scheme_str() == Some(if farm.https { "https" } else { "http" })
        && uri.authority().is_some_and(|authority| authority.as_str() == farm.authority)
}

/// The rest of an exchange after the head of its response.
type Transfer = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        mut request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Transfer,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Transfer), Error>> + Send> {
        if !self.grants.farm.as_ref().is_some_and(|farm| is_of(farm, request.uri())) {
            tracing::warn!(
                component = self.grants.id,
                host = request.uri().authority().map(http::uri::Authority::host),
                "a component requested a host other than the farm"
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
            let response = client.send(request, options.connect_timeout);
            let response = if is_own {
                response.await
            } else {
                let response = client_disconnect.run_until_cancelled(response).await;
                response.unwrap_or_else(|| Err(disconnected(wire::DISCONNECTED)))
            };
            match &response {
                Ok(response) => {
                    span.set_attribute("http.response.status_code", i64::from(response.status().as_u16()));
                }
                Err(error) => span.set_status(Status::error(error.to_string())),
            }
            drop(span);
            let mut response = response?;
            if !is_own {
                response = response.map(|body| bounded(body, idle_timeout, client_disconnect));
            }
            let transfer: Transfer = Box::new(async { Ok(()) });
            Ok((response, transfer))
        })
    }
}

/// A body that fails when no frame arrives for `idle_timeout`, or when the client disconnects. It is dropped at once then, and
/// with it the connection that it is read from.
fn bounded(body: WasiBody, idle_timeout: Duration, client_disconnect: ClientDisconnect) -> WasiBody {
    let frames = stream::try_unfold(body, move |mut body| {
        let client_disconnect = client_disconnect.clone();
        async move {
            let next = timeout(idle_timeout, body.frame());
            let frame = client_disconnect.run_until_cancelled(next).await;
            let frame =
                frame.ok_or(Error::ConnectionTerminated)?.map_err(|_| Error::ConnectionReadTimeout)?;
            Ok(frame.transpose()?.map(|frame| (frame, body)))
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_to_the_farm_only() {
        for (farm, allowed, denied) in [
            (
                "http://127.0.0.1:3001",
                &["http://127.0.0.1:3001/v1/jobs", "http://127.0.0.1:3001"][..],
                &[
                    "http://127.0.0.1:3002/",
                    "http://127.0.0.1/",
                    "https://127.0.0.1:3001/",
                    "http://localhost:3001/",
                    "http://[::1]:3001/",
                    "http://127.0.0.1:3001@evil.example/",
                    "http://user@127.0.0.1:3001/",
                    "/relative",
                ][..],
            ),
            (
                "https://farm.example:443/path",
                &["https://farm.example/path/v1/jobs"],
                &["http://farm.example/", "https://farm.example.evil/", "https://a.farm.example/"],
            ),
            ("http://[::1]:8080", &["http://[::1]:8080/"], &["http://[::2]:8080/", "http://[::1]/"]),
        ] {
            let farm = farm.parse().unwrap();
            for uri in allowed {
                assert!(is_of(&farm, &uri.parse().unwrap()), "{farm} should allow {uri}");
            }
            for uri in denied {
                assert!(!is_of(&farm, &uri.parse().unwrap()), "{farm} should deny {uri}");
            }
        }
    }
}
