//! The addresses of farms, and the order in which an account uses them.
//!
//! Invariant: an address is http or https, with a host and without credentials; a list has no address twice.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::id::AccountId;

/// Maximum number of addresses in a list. One address can have any number of farms behind it.
pub const MAX_FARMS: usize = 64;

/// The address of a farm, or of a proxy with several farms behind it. Addresses are equal if requests to them are
/// the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmAddress {
    /// The scheme is https, not http.
    pub https: bool,
    /// The host, with the port unless it is that of the scheme.
    pub authority: String,
    /// The prefix of all paths, without a slash at its end.
    pub path: String,
}

/// Why a text is not a list of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFarmAddress {
    /// There is no address in the list.
    #[error("no address is given")]
    Missing,
    /// More than [`MAX_FARMS`].
    #[error("at most {MAX_FARMS} addresses can be given; one address can have several farms behind a proxy")]
    TooMany,
    /// Not a URL of a farm.
    #[error("the address {0:?} must be http://HOST[:PORT] or https://HOST[:PORT]")]
    Invalid(String),
    /// The URL has a part `user:password@`, which the message does not show.
    #[error("the address {0:?} must not contain a user name or password")]
    Credentials(String),
    /// An address is in the list more than once.
    #[error("the address {0:?} is given more than once")]
    Duplicate(String),
}

impl FromStr for FarmAddress {
    type Err = InvalidFarmAddress;

    fn from_str(text: &str) -> Result<Self, InvalidFarmAddress> {
        if let Some((before, host)) = text.rsplit_once('@') {
            let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
            return Err(InvalidFarmAddress::Credentials(format!("{scheme}://…@{host}")));
        }
        let invalid = || InvalidFarmAddress::Invalid(text.to_owned());
        let url = Url::parse(text).map_err(|_| invalid())?;
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

/// At least one address. Its text is separated by commas; empty parts and white space around a part are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmAddresses(Vec<FarmAddress>);

impl FarmAddresses {
    /// The addresses in their order.
    #[must_use]
    pub fn into_vec(self) -> Vec<FarmAddress> {
        self.0
    }
}

impl FromStr for FarmAddresses {
    type Err = InvalidFarmAddress;

    fn from_str(text: &str) -> Result<Self, InvalidFarmAddress> {
        let mut addresses = Vec::<FarmAddress>::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let address = part.parse()?;
            if addresses.contains(&address) {
                return Err(InvalidFarmAddress::Duplicate(address.to_string()));
            }
            addresses.push(address);
        }
        match addresses.len() {
            0 => Err(InvalidFarmAddress::Missing),
            1..=MAX_FARMS => Ok(Self(addresses)),
            _ => Err(InvalidFarmAddress::TooMany),
        }
    }
}

impl fmt::Display for FarmAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{address}")?;
        }
        Ok(())
    }
}

/// The value of [`crate::wire::ACCOUNT`]: 16 bytes of the SHA-256 of the account's id, in hexadecimal.
#[must_use]
pub fn account_hash(account: &AccountId) -> String {
    hex::encode(&Sha256::digest(account.as_str())[..16])
}

/// The weight of a farm for an account, by rendezvous hashing: the account uses the farm of the highest weight. When
/// a farm is added, only the accounts move for which it has the highest weight; when one is removed, only its
/// accounts move, to the farm of the next weight.
#[must_use]
pub fn weight(account_hash: &str, address: &FarmAddress) -> u64 {
    let digest = Sha256::new().chain_update(account_hash).chain_update(address.to_string()).finalize();
    digest[..8].iter().fold(0, |weight, byte| weight << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<String, InvalidFarmAddress> {
        text.parse::<FarmAddresses>().map(|list| list.to_string())
    }

    #[test]
    fn a_list_is_separated_by_commas() {
        for (text, expected) in [
            ("http://a:1", "http://a:1"),
            (
                " http://A:80/ , https://b:443,\nhttp://[::1]:3001/farm/ ,,",
                "http://a,https://b,http://[::1]:3001/farm",
            ),
            ("http://a:1,https://a:1,http://a:2", "http://a:1,https://a:1,http://a:2"),
        ] {
            assert_eq!(list(text).unwrap(), expected);
        }
        let many: Vec<_> = (1..=MAX_FARMS).map(|port| format!("http://a:{port}")).collect();
        assert_eq!(list(&many.join(",")).unwrap(), many.join(",").replace(":80,", ","));
    }

    #[test]
    fn an_invalid_list_is_refused_with_the_address() {
        for (text, error) in [
            ("", InvalidFarmAddress::Missing),
            (" , ", InvalidFarmAddress::Missing),
            ("http://a:1,a:2", InvalidFarmAddress::Invalid("a:2".to_owned())),
            ("http:a", InvalidFarmAddress::Invalid("http:a".to_owned())),
            ("ftp://a", InvalidFarmAddress::Invalid("ftp://a".to_owned())),
            ("http://a b", InvalidFarmAddress::Invalid("http://a b".to_owned())),
            ("http://a?b", InvalidFarmAddress::Invalid("http://a?b".to_owned())),
            ("http://u:secret@a:1", InvalidFarmAddress::Credentials("http://…@a:1".to_owned())),
            ("http://a:80,http://A/", InvalidFarmAddress::Duplicate("http://a".to_owned())),
        ] {
            assert_eq!(list(text), Err(error), "{text}");
        }
        let many: Vec<_> = (1..=MAX_FARMS + 1).map(|port| format!("http://a:{port}")).collect();
        assert_eq!(list(&many.join(",")), Err(InvalidFarmAddress::TooMany));
    }

    fn farms(count: usize) -> Vec<FarmAddress> {
        (0..count).map(|number| format!("http://10.0.0.{number}:3001").parse().unwrap()).collect()
    }

    /// The farm of the highest weight for each of 4,000 accounts.
    fn preferred(farms: &[FarmAddress]) -> Vec<String> {
        let account = |number| account_hash(&AccountId::from_text(format!("acc_{number}")));
        let best = |account: &str| farms.iter().max_by_key(|farm| weight(account, farm)).unwrap().to_string();
        (0..4_000).map(|number| best(&account(number))).collect()
    }

    #[test]
    fn accounts_are_spread_evenly() {
        let farms = farms(8);
        let preferred = preferred(&farms);
        for farm in &farms {
            let accounts = preferred.iter().filter(|address| **address == farm.to_string()).count();
            assert!((425..=575).contains(&accounts), "{farm} has {accounts} of 4,000 accounts");
        }
    }

    #[test]
    fn only_the_accounts_of_a_removed_farm_move() {
        let (all, without_last) = (farms(5), farms(4));
        let removed = all[4].to_string();
        for (before, after) in preferred(&all).into_iter().zip(preferred(&without_last)) {
            assert!(before == after || before == removed, "an account moved from {before} to {after}");
        }
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        let mut reversed = farms(5);
        reversed.reverse();
        assert_eq!(preferred(&farms(5)), preferred(&reversed));
    }

    /// Edges of different versions must choose the same farm.
    #[test]
    fn hashes_do_not_change() {
        let hash = account_hash(&AccountId::from_text("acc_1"));
        assert_eq!(hash, "d20de1051f11687f16681900c62a9882");
        assert_eq!(weight(&hash, &"http://farm:3001".parse().unwrap()), 0xa980_d115_a005_febe);
    }
}
