//! The address of a farm, or of the proxy in front of several.
//!
//! Invariant: an address is http or https, with a host and without credentials.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::id::AccountId;

/// The address of a farm, or of a proxy with several farms behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmAddress {
    /// The scheme is https, not http.
    pub https: bool,
    /// The host, with the port unless it is that of the scheme.
    pub authority: String,
    /// The prefix of all paths, without a slash at its end.
    pub path: String,
}

/// Why a text is not the address of a farm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFarmAddress {
    /// Not a URL of a farm.
    #[error("the address {0:?} must be http://HOST[:PORT] or https://HOST[:PORT]")]
    Invalid(String),
    /// The URL has a part `user:password@`, which the message does not show.
    #[error("the address {0:?} must not contain a user name or password")]
    Credentials(String),
}

impl FromStr for FarmAddress {
    type Err = InvalidFarmAddress;

    fn from_str(text: &str) -> Result<Self, InvalidFarmAddress> {
        if let Some((before, host)) = text.rsplit_once('@') {
            let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
            return Err(InvalidFarmAddress::Credentials(format!("{scheme}://…@{host}")));
        }
        let invalid = || InvalidFarmAddress::Invalid(text.to_owned());
        // A list would be a host or a path with a comma.
        let url = Url::parse(text).ok().filter(|_| !text.contains(',')).ok_or_else(invalid)?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| is_plain && text.contains("://")).ok_or_else(invalid)?;
        let https = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(invalid()),
        };
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { https, authority, path: url.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for FarmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http{}://{}{}", if self.https { "s" } else { "" }, self.authority, self.path)
    }
}

/// The value of [`crate::wire::ACCOUNT`]: 16 bytes of the SHA-256 of the account's id, in hexadecimal.
#[must_use]
pub fn account_hash(account: &AccountId) -> String {
    hex::encode(&Sha256::digest(account.as_str())[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_of_a_host() {
        for (text, expected) in [
            ("http://a:1", "http://a:1"),
            ("http://A:80/", "http://a"),
            ("https://b:443", "https://b"),
            ("http://[::1]:3001/farm/", "http://[::1]:3001/farm"),
        ] {
            assert_eq!(text.parse::<FarmAddress>().unwrap().to_string(), expected);
        }
        for text in
            ["", "a:2", "http:a", "ftp://a", "http://a b", "http://a?b", "http://a,b", "http://a:1,http://b"]
        {
            let error = text.parse::<FarmAddress>().unwrap_err();
            assert_eq!(error, InvalidFarmAddress::Invalid(text.to_owned()));
        }
        let error = "http://u:secret@a:1".parse::<FarmAddress>().unwrap_err();
        assert_eq!(error, InvalidFarmAddress::Credentials("http://…@a:1".to_owned()));
    }

    /// Proxies of different edges must choose the same farm.
    #[test]
    fn the_hash_of_an_account_does_not_change() {
        assert_eq!(account_hash(&AccountId::from_text("acc_1")), "d20de1051f11687f16681900c62a9882");
    }
}
