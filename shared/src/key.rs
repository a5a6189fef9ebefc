//! API keys: how they are made, what shape they have, and what is stored of them.
//!
//! `plt_` + 32 base62 characters of randomness + 6 base62 characters of the CRC32 over what
//! stands before: 42 characters. The checksum lets the edge answer junk without a database call.
//! Invariant: the secret leaves an [`ApiKey`] only through [`ApiKey::expose`]; `Debug` hides it.

use std::fmt;

use sha2::{Digest, Sha256};

/// What every key starts with.
pub const PREFIX: &str = "plt_";
/// Characters in a key.
pub const KEY_CHARS: usize = 42;
/// Characters of a key that are stored for display.
pub const DISPLAY_CHARS: usize = 8;
/// Random bytes a new key is made of.
pub const RANDOM_BYTES: usize = 32;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CHECKSUM_CHARS: usize = 6;

/// A key whose shape and checksum are right. Whether anybody holds it, the database says.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Makes a key from 32 bytes of a cryptographic random generator.
    #[must_use]
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        let body = format!("{PREFIX}{}", base62(&random));
        let checksum = checksum(&body);
        Self(body + &checksum)
    }

    /// Reads a key; `None` if its length, prefix, alphabet or checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != KEY_CHARS || !text.starts_with(PREFIX) || !text.is_ascii() {
            return None;
        }
        let (body, claimed) = text.split_at(KEY_CHARS - CHECKSUM_CHARS);
        let alphanumeric = body[PREFIX.len()..].bytes().all(|byte| byte.is_ascii_alphanumeric());
        (alphanumeric && checksum(body) == claimed).then(|| Self(text.to_owned()))
    }

    /// The secret itself, for showing it once.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the whole key in lower-case hex: what is stored and looked up. A fast hash is
    /// right here, because the key holds 190 bits of randomness and cannot be guessed.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256_hex(self.0.as_bytes())
    }

    /// The first characters, for telling keys apart in a list.
    #[must_use]
    pub fn display_prefix(&self) -> &str {
        &self.0[..DISPLAY_CHARS]
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// One base62 character for each byte. The bias of `byte % 62` costs 0.02 bits a character.
pub(crate) fn base62(random: &[u8]) -> String {
    random.iter().map(|&byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// CRC32 (IEEE) in base62, most significant digit first, padded with `0` to six characters.
fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().copied().map(char::from).collect()
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
    fn a_checksum_is_stable() {
        // A change here would lock every existing key out.
        let key = ApiKey::from_random([0; RANDOM_BYTES]);
        assert_eq!(key.expose(), "plt_000000000000000000000000000000003DOjZC");
    }

    #[test]
    fn every_single_character_change_is_noticed() {
        let key = ApiKey::from_random([9; RANDOM_BYTES]);
        for position in 0..KEY_CHARS {
            for replacement in ['a', '!', '_', ' '] {
                let mut text: Vec<char> = key.expose().chars().collect();
                if text[position] == replacement {
                    continue;
                }
                text[position] = replacement;
                let text: String = text.into_iter().collect();
                assert_eq!(ApiKey::parse(&text), None, "{text}");
            }
        }
    }

    #[test]
    fn wrong_lengths_and_non_ascii_are_refused() {
        for text in ["", "plt_", "plt_é", &"p".repeat(41), &"ü".repeat(21)] {
            assert_eq!(ApiKey::parse(text), None, "{text}");
        }
    }
}
