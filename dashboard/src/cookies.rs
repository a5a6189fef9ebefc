//! Cookies: that of the session, and the one that protects forms before sign-in.
//!
//! Invariant: all are `HttpOnly` and `SameSite=Lax`, and `Secure` unless the host is loopback.

use platen_shared::token::Token;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cookie {
    Session,
    /// Binds forms to the browser before sign-in.
    Form,
}

impl Cookie {
    fn name(self, secure: bool) -> String {
        let name = match self {
            Self::Session => "platen",
            Self::Form => "platen-form",
        };
        format!("{}{name}", prefix(secure))
    }

    /// Reads it from the `cookie` headers.
    pub(crate) fn read(self, headers: &[Vec<u8>], secure: bool) -> Option<Token> {
        Token::parse(value(headers, &self.name(secure))?)
    }

    /// The `set-cookie` value that sets it until the browser closes.
    pub(crate) fn set(self, token: &Token, secure: bool) -> String {
        set(&self.name(secure), token.expose(), "", secure)
    }

    /// The `set-cookie` value that removes it.
    pub(crate) fn unset(self, secure: bool) -> String {
        set(&self.name(secure), "", "; Max-Age=0", secure)
    }
}

/// The start of a cookie's name: browsers accept a `__Host-` cookie only from this host over TLS (RFC 6265bis).
pub(crate) fn prefix(secure: bool) -> &'static str {
    if secure { "__Host-" } else { "" }
}

/// The value of a cookie of the `cookie` headers. Two cookies of the name are ignored, because another origin may
/// have set one of them.
pub(crate) fn value<'h>(headers: &'h [Vec<u8>], name: &str) -> Option<&'h str> {
    let mut found = headers
        .iter()
        .filter_map(|header| std::str::from_utf8(header).ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name)
        .map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// A `set-cookie` value with the attributes of every cookie and these.
pub(crate) fn set(name: &str, value: &str, attributes: &str, secure: bool) -> String {
    let secure_attribute = if secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/{attributes}; HttpOnly; SameSite=Lax{secure_attribute}")
}

/// Whether a `Host` header names the loopback interface, where TLS is not required.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_read_back_and_duplicates_are_ignored() {
        let token = Token::from_random([3; 40]);
        let set = Cookie::Session.set(&token, false);
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{set}");
        let pair = set.split(';').next().unwrap();
        let headers = |text: &str| vec![text.as_bytes().to_vec()];
        let read = |text: &str| Cookie::Session.read(&headers(text), false);
        assert_eq!(read(&format!("a=b; {pair}; c")), Some(token.clone()));
        assert_eq!(read(&format!("{pair}; {pair}")), None);
        assert_eq!(read("platen=x"), None);
        assert_eq!(Cookie::Form.read(&headers(pair), false), None);
        assert!(Cookie::Session.set(&token, true).starts_with("__Host-platen="));
        assert!(Cookie::Session.set(&token, true).ends_with("; Secure"));
    }

    #[test]
    fn only_localhost_and_loopback_addresses_are_loopback() {
        for host in ["127.0.0.1:3000", "localhost", "LOCALHOST:1", "[::1]:3000", "a.localhost:3", "127.1.2.3"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "example.com", "localhost.example.com", "127.0.0.1.example.com:80", "10.0.0.1", "[::2]"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
