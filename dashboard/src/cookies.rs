//! The two cookies: the session's, and the one that forms before a session are tied to.
//!
//! Invariant: out of reach for scripts, never sent by another site's post, and only over TLS, but
//! for a server on this very machine.

use platen_shared::token::Token;

/// Which cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cookie {
    /// Whoever has it is signed in.
    Session,
    /// Ties the forms of somebody who is not signed in to their browser.
    Form,
}

impl Cookie {
    fn name(self, secure: bool) -> &'static str {
        // The prefix makes browsers refuse one that another host or an unprotected page set.
        match (self, secure) {
            (Self::Session, true) => "__Host-platen",
            (Self::Session, false) => "platen",
            (Self::Form, true) => "__Host-platen-form",
            (Self::Form, false) => "platen-form",
        }
    }

    /// Reads it from the `cookie` headers. Two of one name are none: one of them is somebody else's.
    #[must_use]
    pub fn read(self, headers: &[Vec<u8>], secure: bool) -> Option<Token> {
        let mut found = headers
            .iter()
            .filter_map(|header| std::str::from_utf8(header).ok())
            .flat_map(|header| header.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.name(secure))
            .map(|(_, value)| Token::parse(value));
        match (found.next(), found.next()) {
            (Some(token), None) => token,
            _ => None,
        }
    }

    /// The value of `set-cookie` that sets it, for as long as the browser runs.
    #[must_use]
    pub fn set(self, token: &Token, secure: bool) -> String {
        let secure_attribute = if secure { "; Secure" } else { "" };
        format!("{}={}; Path=/; HttpOnly; SameSite=Lax{secure_attribute}", self.name(secure), token.expose())
    }

    /// The value of `set-cookie` that removes it.
    #[must_use]
    pub fn unset(self, secure: bool) -> String {
        let secure_attribute = if secure { "; Secure" } else { "" };
        format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure_attribute}", self.name(secure))
    }
}

/// Whether a host is this very machine, where there is no TLS.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
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
    fn a_cookie_is_read_back_and_two_are_none() {
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
    fn only_this_machine_is_loopback() {
        for here in ["127.0.0.1:3000", "localhost", "LOCALHOST:1", "[::1]:3000", "a.localhost:3", "127.1.2.3"]
        {
            assert!(is_loopback(here), "{here}");
        }
        for there in
            ["", "example.com", "localhost.example.com", "127.0.0.1.example.com:80", "10.0.0.1", "[::2]"]
        {
            assert!(!is_loopback(there), "{there}");
        }
    }
}
