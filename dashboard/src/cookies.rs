//! Cookies: that of the session, the one that protects forms before sign-in, the chosen colours, and secrets that are shown
//! once.
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
    fn name(self) -> &'static str {
        match self {
            Self::Session => "platen",
            Self::Form => "platen-form",
        }
    }

    /// Reads it from the `cookie` headers.
    pub(crate) fn read(self, headers: &[Vec<u8>], secure: bool) -> Option<Token> {
        Token::parse(value(headers, self.name(), secure)?)
    }

    /// The `set-cookie` value that sets it until the browser closes.
    pub(crate) fn set(self, token: &Token, secure: bool) -> String {
        set(self.name(), token.expose(), "", secure)
    }

    /// The `set-cookie` value that removes it.
    pub(crate) fn unset(self, secure: bool) -> String {
        set(self.name(), "", "; Max-Age=0", secure)
    }
}

/// The start of a cookie's name: browsers accept a `__Host-` cookie only from this host over TLS (RFC 6265bis).
fn prefix(secure: bool) -> &'static str {
    if secure { "__Host-" } else { "" }
}

/// The value of a cookie of the `cookie` headers. Two cookies of the name are ignored, because another origin may
/// have set one of them.
pub(crate) fn value<'h>(headers: &'h [Vec<u8>], name: &str, secure: bool) -> Option<&'h str> {
    let mut found = headers
        .iter()
        .filter_map(|header| std::str::from_utf8(header).ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| found.strip_prefix(prefix(secure)) == Some(name))
        .map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// A `set-cookie` value with the attributes of every cookie and these.
pub(crate) fn set(name: &str, value: &str, attributes: &str, secure: bool) -> String {
    let (prefix, secure) = (prefix(secure), if secure { "; Secure" } else { "" });
    format!("{prefix}{name}={value}; Path=/{attributes}; HttpOnly; SameSite=Lax{secure}")
}

/// The colours of pages that a user has chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Those of the browser.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The value of the field, of the cookie, and of `data-theme` in a page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// Reads it from the `cookie` headers.
    pub(crate) fn read(headers: &[Vec<u8>], secure: bool) -> Self {
        value(headers, "platen-theme", secure).and_then(Self::find).unwrap_or_default()
    }

    /// The `set-cookie` value that keeps it for a year.
    pub(crate) fn set(self, secure: bool) -> String {
        set("platen-theme", self.name(), "; Max-Age=31536000", secure)
    }
}

/// The parameter of the address that holds the label.
pub(crate) const ONCE_FIELD: &str = "created";
/// The lifetime of the cookie. A redirect is followed at once.
const ONCE_SECONDS: u32 = 60;

/// A secret that the page after a redirect shows once, and its label. The secret is in a cookie of its own, named by a random
/// label that the address of the page holds. The cookie is valid for a minute, and the page that shows it removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Once {
    label: String,
    secret: String,
}

impl Once {
    /// A secret of cookie characters: no space, comma, semicolon, quote or backslash.
    pub(crate) fn new(label: [u8; 8], secret: String) -> Self {
        Self { label: hex::encode(label), secret }
    }

    /// The secret of a label, if the browser has it.
    pub(crate) fn read(headers: &[Vec<u8>], label: &str, secure: bool) -> Option<Self> {
        let is_label = label.len() == 16 && label.bytes().all(|byte| byte.is_ascii_hexdigit());
        let secret = value(headers, &Self::cookie(is_label.then_some(label)?), secure)?.to_owned();
        (!secret.is_empty()).then_some(Self { label: label.to_owned(), secret })
    }

    fn cookie(label: &str) -> String {
        format!("platen-once-{label}")
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The two parts of a secret that was made of them, joined by `~`.
    pub(crate) fn parts(&self) -> Option<(&str, &str)> {
        self.secret.split_once('~')
    }

    /// The `set-cookie` value that keeps it.
    pub(crate) fn set(&self, secure: bool) -> String {
        set(&Self::cookie(&self.label), &self.secret, &format!("; Max-Age={ONCE_SECONDS}"), secure)
    }

    /// The `set-cookie` value that removes it.
    pub(crate) fn unset(&self, secure: bool) -> String {
        set(&Self::cookie(&self.label), "", "; Max-Age=0", secure)
    }
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

    #[test]
    fn a_secret_is_read_by_its_label_only() {
        let once = Once::new([1; 8], "key_x~sk".to_owned());
        assert_eq!(once.parts(), Some(("key_x", "sk")));
        for secure in [false, true] {
            let set = once.set(secure);
            assert_eq!(set.contains("; Secure"), secure);
            let header = vec![set.split(';').next().unwrap().as_bytes().to_vec()];
            assert_eq!(Once::read(&header, once.label(), secure).as_ref(), Some(&once));
            for label in ["", "0202020202020202", "01010101010101zz", "0101010101010101; a"] {
                assert_eq!(Once::read(&header, label, secure), None);
            }
        }
        assert!(once.unset(true).starts_with("__Host-platen-once-0101010101010101=; "));
        assert_eq!(Once::read(&[b"platen-once-0101010101010101=".to_vec()], once.label(), false), None);
    }
}
