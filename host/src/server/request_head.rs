//! What the server reads in the head of a request, and changes before a component gets it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version, header, uri};
use platen_program::telemetry;
use platen_shared::wire;
use tracing::{Span, info_span};
use uuid::Uuid;

use super::server_error::ServerError;

/// A span of the request, which is the parent that the component sees.
pub(super) fn begin_span<B>(request: &mut Request<B>, route: &'static str, id: &str) -> Span {
    // Of jobs only.
    request.headers_mut().remove(wire::JOB_TRACEPARENT);
    let span = info_span!(
        target: telemetry::TARGET,
        "request",
        otel.name = format!("{} {}", request.method(), route),
        otel.kind = "server",
        http.request.method = request.method().as_str(),
        http.route = route,
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

/// Gives a request the form that it has on Spin: the absolute URL, and the address of the client in Spin's header.
pub(super) fn prepare<B>(request: &mut Request<B>, client: SocketAddr) -> Result<(), ServerError> {
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    let is_unknown = |coding: &HeaderValue| !coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(is_unknown) || codings.next().is_some() {
        return Err(ServerError::UnknownTransferCoding);
    }
    let authority = authority(request)?;
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.path_and_query.get_or_insert_with(|| uri::PathAndQuery::from_static("/"));
    parts.scheme = Some(uri::Scheme::HTTP);
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| ServerError::NoHost)?;
    let client = HeaderValue::try_from(client.to_string()).expect("an address is ASCII");
    request.headers_mut().remove(header::CONNECTION);
    request.headers_mut().insert("spin-client-addr", client);
    Ok(())
}

/// The address by which clients are limited and take turns: an IPv4 address, or the /64 network of an IPv6 address,
/// because a client chooses the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// The address of the peer, or the one in the header in which the operator's reverse proxy sends it. Proxies append theirs to
    /// what a client has sent, so the last entry counts.
    pub(super) fn of(headers: &HeaderMap, proxy_header: Option<&HeaderName>, peer: SocketAddr) -> Self {
        let last = proxy_header.and_then(|name| headers.get_all(name).iter().next_back());
        let entry = last.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        entry.and_then(|entry| entry.trim().parse().ok()).unwrap_or(peer.ip()).into()
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ClientAddress {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn ipv6_clients_are_grouped_by_network() {
        assert_eq!(address("2001:db8:0:1::1"), address("2001:db8:0:1:ffff::2"));
        assert_ne!(address("2001:db8:0:1::1"), address("2001:db8:0:2::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }

    #[test]
    fn only_the_configured_header_is_believed_and_only_its_last_entry() {
        let peer = "192.0.2.9:1".parse().unwrap();
        let name = HeaderName::from_static("x-forwarded-for");
        let of = |values: &[&str], proxy_header| {
            let headers = values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect();
            ClientAddress::of(&headers, proxy_header, peer)
        };
        assert_eq!(of(&["192.0.2.1"], None), address("192.0.2.9"));
        for (values, expected) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["192.0.2.1, 192.0.2.2"], "192.0.2.2"),
            (&["192.0.2.1", "192.0.2.3"], "192.0.2.3"),
            (&["192.0.2.1, x"], "192.0.2.9"),
            (&[], "192.0.2.9"),
        ] {
            assert_eq!(of(values, Some(&name)), address(expected), "{values:?}");
        }
    }
}
