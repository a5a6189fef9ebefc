//! Rate limits of sign-in attempts.
//!
//! Invariant: an attempt is counted before the password is checked, so concurrent attempts cannot exceed the
//! limit. A stranger with few network addresses cannot use up the attempts of a user. Subjects are stored as hashes. Unknown e-mail addresses are counted like known ones.

use std::net::{IpAddr, SocketAddr};

use sha2::{Digest as _, Sha256};

/// Length of the window in which attempts are counted.
pub(crate) const WINDOW_SECONDS: i64 = 15 * 60;
/// Attempts per window for one e-mail address, from one network address or one known browser.
const MAX_ATTEMPTS: u32 = 10;
/// Attempts per window for one e-mail address, from all network addresses.
const MAX_ATTEMPTS_PER_EMAIL: u32 = 100;
/// Attempts per window from one network address, which several users may share.
const MAX_ATTEMPTS_PER_ADDRESS: u32 = 60;

/// Large forms per window from one network address that come without a session.
pub(crate) const MAX_LARGE_FORMS: u32 = 60;

/// The error text for a sign-in that has to wait.
pub(crate) fn wait_message(seconds: u64) -> String {
    match seconds.div_ceil(60) {
        1 => "Too many attempts. Try again in 1 minute.".to_owned(),
        minutes => format!("Too many attempts. Try again in {minutes} minutes."),
    }
}

/// What sign-in attempts are counted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The key of the count in the database.
    pub(crate) hash: String,
    /// Attempts allowed per window.
    pub(crate) allowed: u32,
}

impl Subject {
    /// Attempts for this e-mail address from this network address, so that those of a stranger do not count for the user.
    pub(crate) fn email_from(email: &str, address: &str) -> Self {
        let subject = format!("{email} {}", network(address));
        Self { hash: hash("email and address", &subject), allowed: MAX_ATTEMPTS }
    }

    /// Attempts for this e-mail address in a browser that the user has signed in with before.
    pub(crate) fn browser(email: &str, browser: &str) -> Self {
        Self { hash: hash("email and browser", &format!("{email} {browser}")), allowed: MAX_ATTEMPTS }
    }

    /// Attempts for this e-mail address in other browsers.
    pub(crate) fn email(email: &str) -> Self {
        Self { hash: hash("email", email), allowed: MAX_ATTEMPTS_PER_EMAIL }
    }

    /// All attempts from this network address.
    pub(crate) fn address(address: &str) -> Self {
        Self { hash: hash("address", &network(address)), allowed: MAX_ATTEMPTS_PER_ADDRESS }
    }

    /// The large forms that come from this network address without a session.
    pub(crate) fn large_forms(address: &str) -> Self {
        Self { hash: hash("large forms", &network(address)), allowed: MAX_LARGE_FORMS }
    }
}

/// What a network address is counted as: an IPv6 address by its /64 network, because a subscriber gets all of it.
fn network(address: &str) -> String {
    match parse(address) {
        Some(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => {
            format!("{:x?}", &address.segments()[..4])
        }
        Some(address) => address.to_canonical().to_string(),
        None => address.to_owned(),
    }
}

/// A network address without its port, or `unknown`, for display.
pub(crate) fn display_address(address: &str) -> String {
    parse(address).map_or_else(|| "unknown".to_owned(), |address| address.to_canonical().to_string())
}

/// Reads an address with or without a port.
fn parse(address: &str) -> Option<IpAddr> {
    let socket = address.parse::<SocketAddr>().map(|socket| socket.ip());
    socket.or_else(|_| address.trim_matches(['[', ']']).parse()).ok()
}

fn hash(kind: &str, subject: &str) -> String {
    hex::encode(Sha256::digest(format!("{kind}:{subject}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_counted_without_its_port_and_by_its_ipv6_network() {
        let same = [
            ("1.2.3.4:5", "1.2.3.4:6"),
            ("1.2.3.4", "1.2.3.4:6"),
            ("[::ffff:1.2.3.4]:1", "1.2.3.4:2"),
            ("[2001:db8::1]:5", "[2001:db8::ffff:2]:6"),
        ];
        for (one, other) in same {
            assert_eq!(Subject::address(one), Subject::address(other), "{one} {other}");
        }
        assert_ne!(Subject::address("1.2.3.4:5"), Subject::address("1.2.3.5:5"));
        assert_ne!(Subject::address("[2001:db8::1]:5"), Subject::address("[2001:db8:0:1::1]:5"));
        assert_eq!(Subject::email_from("a", "1.2.3.4:5"), Subject::email_from("a", "1.2.3.4:6"));
        assert_ne!(Subject::email_from("a", "1.2.3.4:5"), Subject::email_from("a", "1.2.3.5:5"));
        assert_ne!(Subject::address("a").hash, Subject::email("a").hash);
        assert_eq!(display_address("[::1]:80"), "::1");
        assert_eq!(display_address("<script>"), "unknown");
    }

    #[test]
    fn waits_are_rounded_up_to_minutes() {
        assert_eq!(wait_message(1), "Too many attempts. Try again in 1 minute.");
        assert_eq!(wait_message(61), "Too many attempts. Try again in 2 minutes.");
    }
}
