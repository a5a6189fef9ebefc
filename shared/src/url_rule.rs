//! What a `url` may be, as far as its text tells.
//!
//! Invariant: a URL that passes is absolute, http or https, without credentials, and its host is
//! neither a literal address nor a name that can only be local. Left to others: the address a
//! name resolves to (farm).

use std::net::IpAddr;

use url::{Host, Url};

use crate::{address, limits};

/// Why a URL is refused. `Display` completes the sentence `"url" …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// Empty, or not a URL on its own.
    #[error("must be an absolute http or https URL")]
    NotAbsolute,
    /// Another scheme.
    #[error("must use http or https")]
    Scheme,
    /// Over [`limits::MAX_URL_CHARS`].
    #[error("must be at most {} characters", limits::MAX_URL_CHARS)]
    TooLong,
    /// `user:password@`.
    #[error("must not contain a user name or password")]
    Credentials,
    /// White space or a control character, which a parser would silently drop.
    #[error("must not contain white space or control characters")]
    Character,
    /// A literal address or local name that a render may not reach.
    #[error("must be reachable from the public internet")]
    NotPublic,
}

/// Names, and everything below them, that never lead to the public internet: RFC 6761, RFC 6762,
/// RFC 8375, ICANN's `internal`, and what resolvers and hosts files commonly give this machine.
const LOCAL_NAMES: &[&str] = &["localhost", "local", "internal", "localdomain", "home.arpa"];

/// Parses and checks a URL.
///
/// # Errors
/// The first rule it breaks, as a [`InvalidUrl`].
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
    // `http:example.com` and `http:\\example.com` parse too; they are spellings nobody means.
    let after_scheme = &text[url.scheme().len()..];
    if !after_scheme.starts_with("://") {
        return Err(InvalidUrl::NotAbsolute);
    }
    if !url.username().is_empty() || url.password().is_some() || authority(after_scheme).contains('@') {
        return Err(InvalidUrl::Credentials);
    }
    let public = match url.host() {
        Some(Host::Ipv4(address)) => address::classify(IpAddr::V4(address)).is_public(),
        Some(Host::Ipv6(address)) => address::classify(IpAddr::V6(address)).is_public(),
        Some(Host::Domain(name)) => !is_local_name(name),
        None => return Err(InvalidUrl::NotAbsolute),
    };
    if public { Ok(url) } else { Err(InvalidUrl::NotPublic) }
}

/// Whether a host name can only mean this machine or network.
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
    fn urls_are_accepted_or_refused_for_one_reason() {
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
