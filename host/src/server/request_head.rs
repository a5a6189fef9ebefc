//! What the server changes in the head of a request before a component gets it.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue, Request, Uri, Version, header, uri};
use platen_program::telemetry;
use platen_shared::wire;
use tracing::{Span, info_span};
use uuid::Uuid;

use super::{router::Route, server_error::ServerError};

/// A span of the request, which is the parent that the component sees.
pub(super) fn begin_span<B>(request: &mut Request<B>, route: &Route, id: &str) -> Span {
    // Of jobs only.
    request.headers_mut().remove(wire::JOB_TRACEPARENT);
    let span = info_span!(
        target: telemetry::TARGET,
        "request",
        otel.name = format!("{} {}", request.method(), route.pattern),
        otel.kind = "server",
        http.request.method = request.method().as_str(),
        http.route = route.pattern,
        platen.request_id = id,
    );
    let span = telemetry::continued(span, request.headers());
    if let Some(trace) = telemetry::context(&span) {
        telemetry::inject(&trace, request.headers_mut());
    }
    span
}

/// The client's request id if it is valid, otherwise a new one, which is added to the request.
pub(super) fn request_id<B>(request: &mut Request<B>) -> String {
    let given = request.headers().get(wire::REQUEST_ID).and_then(|value| value.to_str().ok());
    match given {
        Some(id) if wire::is_request_id(id) => id.to_owned(),
        _ => {
            let id = Uuid::now_v7().to_string();
            let value = HeaderValue::from_str(&id).expect("a UUID is ASCII");
            request.headers_mut().insert(HeaderName::from_static(wire::REQUEST_ID), value);
            id
        }
    }
}

/// The host that the request is for.
fn authority<B>(request: &Request<B>) -> Result<uri::Authority, ServerError> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let authority = match (hosts.next(), hosts.next()) {
        (Some(host), None) => uri::Authority::try_from(host.as_bytes()).ok(),
        (None, _) if request.version() == Version::HTTP_10 => request.uri().authority().cloned(),
        _ => None,
    };
    let is_valid = |authority: &uri::Authority| {
        let port = authority.as_str().strip_prefix(authority.host());
        !authority.as_str().contains('@')
            && port.is_some_and(|port| port.is_empty() || port == ":" || authority.port_u16().is_some())
    };
    authority.filter(is_valid).ok_or(ServerError::NoHost)
}

/// Gives a request the form that it has on Spin: the absolute URL, and Spin's headers, which replace those
/// of the client.
pub(super) fn prepare<B>(
    request: &mut Request<B>,
    route: &Route,
    client: SocketAddr,
) -> Result<(), ServerError> {
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    if codings.next().is_some_and(|coding| coding != "chunked") || codings.next().is_some() {
        return Err(ServerError::UnknownTransferCoding);
    }
    let authority = authority(request)?;
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    let path = parts.path_and_query.get_or_insert_with(|| uri::PathAndQuery::from_static("/"));
    let spin = [
        ("spin-full-url", format!("http://{authority}{path}")),
        ("spin-path-info", route.rest_of(path.path()).to_owned()),
        ("spin-matched-route", route.pattern.to_owned()),
        ("spin-component-route", route.prefix.clone()),
        ("spin-raw-component-route", route.pattern.to_owned()),
        ("spin-base-path", "/".to_owned()),
        ("spin-client-addr", client.to_string()),
    ];
    parts.scheme = Some(uri::Scheme::HTTP);
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| ServerError::NoHost)?;
    request.headers_mut().remove(header::CONNECTION);
    for (name, value) in spin {
        let value = HeaderValue::try_from(value).map_err(|_| ServerError::NoHost)?;
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
    Ok(())
}
