//! How often a sign-in may be tried.
//!
//! Invariant: a try is counted before the password is looked at, so that many at once are not let
//! through; what is counted is a hash of the subject. The count of an unknown address is kept like
//! that of a known one.

use std::net::{IpAddr, SocketAddr};

use sha2::{Digest as _, Sha256};

use crate::hex;

/// How long tries are counted together.
pub const WINDOW_SECONDS: u64 = 15 * 60;
/// Tries for one e-mail address within a window.
pub const TRIES_PER_EMAIL: u32 = 10;
/// Tries from one network address within a window: several people may share one.
pub const TRIES_PER_ADDRESS: u32 = 60;

/// What somebody who has to wait is told.
#[must_use]
pub fn wait_text(seconds: u64) -> String {
    match seconds.div_ceil(60) {
        1 => "Too many tries. Please wait a minute.".to_owned(),
        minutes => format!("Too many tries. Please wait {minutes} minutes."),
    }
}

/// What tries are counted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What stands in the database.
    pub hash: String,
    /// How many are allowed.
    pub allowed: u32,
}

impl Subject {
    /// Whoever is named by this e-mail address.
    #[must_use]
    pub fn email(email: &str) -> Self {
        Self { hash: hash("email", email), allowed: TRIES_PER_EMAIL }
    }

    /// Whoever comes from this network address: of an IPv6 address its network counts, since one
    /// subscriber has all of it.
    #[must_use]
    pub fn address(address: &str) -> Self {
        let subject = match parse(address) {
            Some(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => {
                format!("{:x?}", &address.segments()[..4])
            }
            Some(address) => address.to_canonical().to_string(),
            None => address.to_owned(),
        };
        Self { hash: hash("address", &subject), allowed: TRIES_PER_ADDRESS }
    }
}

/// An address for people's eyes: without the port.
#[must_use]
pub fn shown_address(address: &str) -> String {
    parse(address).map_or_else(|| "unknown".to_owned(), |address| address.to_canonical().to_string())
}

/// With or without a port.
fn parse(address: &str) -> Option<IpAddr> {
    let socket = address.parse::<SocketAddr>().map(|socket| socket.ip());
    socket.or_else(|_| address.trim_matches(['[', ']']).parse()).ok()
}

fn hash(kind: &str, subject: &str) -> String {
    hex::encode(&Sha256::digest(format!("{kind}:{subject}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_do_not_count_and_neighbours_in_a_network_are_one() {
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
        assert_ne!(Subject::address("a").hash, Subject::email("a").hash);
        assert_eq!(shown_address("[::1]:80"), "::1");
        assert_eq!(shown_address("<script>"), "unknown");
    }

    #[test]
    fn waits_are_told_in_whole_minutes() {
        assert_eq!(wait_text(1), "Too many tries. Please wait a minute.");
        assert_eq!(wait_text(61), "Too many tries. Please wait 2 minutes.");
    }
}
