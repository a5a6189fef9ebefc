//! The rules for `url` that can be checked without resolving its host.
//!
//! Invariant: a URL that passes is absolute, http or https, without credentials, and, unless the operator gives it, its host
//! is neither a literal address that is not public nor a local name. These checks give early errors; they are not a security
//! boundary, because a public name can resolve to any address.

use std::net::IpAddr;

use url::{Host, Url};

use crate::{address, limits};

/// The rule that a URL breaks. `Display` completes the sentence `"url" …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// Empty, relative, or not a URL.
    #[error("must be an absolute http or https URL")]
    NotAbsolute,
    /// The scheme is neither http nor https.
    #[error("must use http or https")]
    Scheme,
    /// Longer than [`limits::MAX_URL_CHARS`].
    #[error("must be at most {} characters", limits::MAX_URL_CHARS)]
    TooLong,
    /// The URL has a part `user:password@`.
    #[error("must not contain a user name or password")]
    Credentials,
    /// White space or a control character, which URL parsers remove silently.
    #[error("must not contain white space or control characters")]
    Character,
    /// The host is a literal address that is not public, or a local name.
    #[error("must be reachable from the public internet")]
    NotPublic,
}

/// Domains that are never on the public internet: RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`, and
/// `localdomain`, a common name of the local machine in hosts files.
const LOCAL_NAMES: &[&str] = &["localhost", "local", "internal", "localdomain", "home.arpa"];

/// Parses and checks a URL.
///
/// # Errors
/// The first rule that the URL breaks.
pub fn parse(text: &str) -> Result<Url, InvalidUrl> {
    let url = parse_with_any_host(text)?;
    let is_public = match url.host() {
        Some(Host::Ipv4(address)) => address::classify(IpAddr::V4(address)).is_public(),
        Some(Host::Ipv6(address)) => address::classify(IpAddr::V6(address)).is_public(),
        Some(Host::Domain(name)) => !is_local_name(name),
        None => false,
    };
    if is_public { Ok(url) } else { Err(InvalidUrl::NotPublic) }
}

/// Parses a URL and checks it by all rules but [`InvalidUrl::NotPublic`].
///
/// # Errors
/// The first rule that the URL breaks.
pub fn parse_with_any_host(text: &str) -> Result<Url, InvalidUrl> {
    if text.chars().count() > limits::MAX_URL_CHARS {
        return Err(InvalidUrl::TooLong);
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(InvalidUrl::Character);
    }
    let url = Url::parse(text).map_err(|_| InvalidUrl::NotAbsolute)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(InvalidUrl::Scheme);
    }
    // `http:example.com` and `http:\\example.com` are accepted by the parser, but are spelling mistakes.
    let after_scheme = &text[url.scheme().len()..];
    if !after_scheme.starts_with("://") {
        return Err(InvalidUrl::NotAbsolute);
    }
    if !url.username().is_empty() || url.password().is_some() || authority(after_scheme).contains('@') {
        return Err(InvalidUrl::Credentials);
    }
    if url.has_host() { Ok(url) } else { Err(InvalidUrl::NotAbsolute) }
}

/// Whether a host name is, or is below, a domain of the local machine or network.
#[must_use]
pub fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    LOCAL_NAMES
        .iter()
        .any(|local| name.strip_suffix(local).is_some_and(|head| head.is_empty() || head.ends_with('.')))
}

fn authority(after_scheme: &str) -> &str {
    let text = after_scheme.trim_start_matches("://");
    text.split(['/', '\\', '?', '#']).next().unwrap_or_default()
}
