//! The rules for `url` that can be checked without resolving its host.
//!
//! Invariant: a URL that passes is absolute, http or https, without credentials, and its host is neither a
//! literal address that is not public nor a local name. These checks give early errors; they are not a
//! security boundary, because a public name can resolve to any address.

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
    let is_public = match url.host() {
        Some(Host::Ipv4(address)) => address::classify(IpAddr::V4(address)).is_public(),
        Some(Host::Ipv6(address)) => address::classify(IpAddr::V6(address)).is_public(),
        Some(Host::Domain(name)) => !is_local_name(name),
        None => return Err(InvalidUrl::NotAbsolute),
    };
    if is_public { Ok(url) } else { Err(InvalidUrl::NotPublic) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_accepted_or_refused_with_a_reason() {
        use InvalidUrl::{Character, Credentials, NotAbsolute, NotPublic, Scheme, TooLong};
        let long = format!("https://example.com/{}", "a".repeat(2_029));
        let table: &[(&str, Result<(), InvalidUrl>)] = &[
            ("https://example.com", Ok(())),
            ("HTTP://EXAMPLE.com:8080/a?b#c", Ok(())),
            ("https://münchen.example/", Ok(())),
            ("http://8.8.8.8/", Ok(())),
            ("http://[2606:4700::1]/", Ok(())),
            (&long[..2_048], Ok(())),
            (&long, Err(TooLong)),
            ("", Err(NotAbsolute)),
            ("example.com", Err(NotAbsolute)),
            ("/path", Err(NotAbsolute)),
            ("//example.com", Err(NotAbsolute)),
            ("http:example.com", Err(NotAbsolute)),
            ("http:\\\\example.com", Err(NotAbsolute)),
            ("https://", Err(NotAbsolute)),
            ("https://exa mple.com", Err(Character)),
            (" https://example.com", Err(Character)),
            ("https://example.com/\n", Err(Character)),
            ("https://example.com/\0", Err(Character)),
            ("ftp://example.com", Err(Scheme)),
            ("file:///etc/passwd", Err(Scheme)),
            ("javascript:alert(1)", Err(Scheme)),
            ("data:text/html,x", Err(Scheme)),
            ("view-source:https://example.com", Err(Scheme)),
            ("https://user@example.com", Err(Credentials)),
            ("https://user:pw@example.com", Err(Credentials)),
            ("https://:@example.com", Err(Credentials)),
            ("https://@example.com", Err(Credentials)),
            ("https://example.com/@", Ok(())),
            ("http://127.0.0.1", Err(NotPublic)),
            ("http://2130706433", Err(NotPublic)),
            ("http://0x7f.1", Err(NotPublic)),
            ("http://0177.0.0.1", Err(NotPublic)),
            ("http://127.1", Err(NotPublic)),
            ("http://127.0.0.1.", Err(NotPublic)),
            ("http://①②⑦.⓪.⓪.①", Err(NotPublic)),
            ("http://[::1]", Err(NotPublic)),
            ("http://[::ffff:169.254.169.254]", Err(NotPublic)),
            ("http://169.254.169.254/latest/meta-data", Err(NotPublic)),
            ("http://localhost", Err(NotPublic)),
            ("http://LOCALHOST.:3000", Err(NotPublic)),
            ("http://a.localhost", Err(NotPublic)),
            ("http://printer.local", Err(NotPublic)),
            ("http://metadata.google.internal", Err(NotPublic)),
            ("http://notlocalhost/", Ok(())),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).map(drop), *expected, "{text:?}");
        }
    }
}
