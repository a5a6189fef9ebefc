//! API keys: `plt_`, 32 base62 characters of randomness, and 6 base62 characters of the CRC32 over
//! what precedes them; 42 characters in all.
//!
//! The checksum lets the edge reject a malformed key without a database call.

use crate::token::{has_checksum, secret, with_checksum};

/// The prefix of every key.
pub const PREFIX: &str = "plt_";
/// Length of a key in characters.
pub const KEY_CHARS: usize = 42;
/// Number of leading characters of a key that are stored for display.
pub const DISPLAY_PREFIX_CHARS: usize = 8;
/// Number of random bytes that a new key is made from.
pub const RANDOM_BYTES: usize = 32;

secret!(
    /// A key whose length, alphabet and checksum are valid. Only the database can tell whether it exists.
    ApiKey
);

impl ApiKey {
    /// Makes a key from the bytes of a cryptographic random generator.
    #[must_use]
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        Self(with_checksum(PREFIX, &random))
    }

    /// Reads the key from the values of the `authorization` header. `None` unless there is exactly one value,
    /// its scheme is `Bearer` in any case of letters (RFC 9110 11.1), and shape and checksum of the key are
    /// valid.
    #[must_use]
    pub fn from_authorization(values: &[Vec<u8>]) -> Option<Self> {
        let [value] = values else { return None };
        let (scheme, key) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| Self::parse(key.trim_matches(' '))).flatten()
    }

    /// Reads a key; `None` if its length, prefix, alphabet or checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        has_checksum(text, PREFIX, RANDOM_BYTES).then(|| Self(text.to_owned()))
    }

    /// The first characters, by which an owner tells keys apart in a list.
    #[must_use]
    pub fn display_prefix(&self) -> &str {
        &self.0[..DISPLAY_PREFIX_CHARS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_has_the_documented_shape_and_parses() {
        let key = ApiKey::from_random(std::array::from_fn(|i| u8::try_from(i * 7).unwrap()));
        assert_eq!(key.expose().len(), KEY_CHARS);
        assert_eq!(ApiKey::parse(key.expose()), Some(key.clone()));
        assert_eq!(key.display_prefix(), &key.expose()[..8]);
        assert_eq!(key.hash().len(), 64);
        assert!(!format!("{key:?}").contains(key.display_prefix()));
    }

    #[test]
    fn the_checksum_is_stable() {
        // A change would invalidate every existing key.
        let key = ApiKey::from_random([0; RANDOM_BYTES]);
        assert_eq!(key.expose(), "plt_000000000000000000000000000000003DOjZC");
    }
}
