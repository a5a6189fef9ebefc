//! Secrets in invite links and session cookies, and what they have in common with API keys, links and ids: base62 text from random
//! bytes, a checksum, a `Debug` that hides the secret, and SHA-256 as the stored form.
//!
//! Invariant: the database stores only [`Token::hash`], so that its content does not let anyone sign in.

use sha2::{Digest, Sha256};

/// The digits of base62, in the order of their values.
pub(crate) const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// One base62 character for each byte. The bias of `byte % 62` costs 0.02 bits a character.
pub(crate) fn base62(random: &[u8]) -> String {
    random.iter().map(|&byte| char::from(BASE62[usize::from(byte) % BASE62.len()])).collect()
}

const CHECKSUM_CHARS: usize = 6;

/// A prefix, one base62 character for each byte, and the checksum of both.
pub(crate) fn with_checksum(prefix: &str, random: &[u8]) -> String {
    let body = format!("{prefix}{}", base62(random));
    let checksum = checksum(&body);
    body + &checksum
}

/// Whether a text has this prefix, this number of base62 characters, and their checksum.
pub(crate) fn has_checksum(text: &str, prefix: &str, chars: usize) -> bool {
    let Some((body, claimed)) = text.split_at_checked(prefix.len() + chars) else { return false };
    let is_alphanumeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    body.strip_prefix(prefix).is_some_and(is_alphanumeric) && checksum(body) == claimed
}

/// CRC32 (IEEE) in base62, most significant digit first, padded with `0` to six characters.
fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [0; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits.map(char::from).iter().collect()
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Defines a type for a secret text. The module that uses the macro adds constructors.
macro_rules! secret {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// The secret as plain text, to send it to its owner once.
            #[must_use]
            pub fn expose(&self) -> &str {
                &self.0
            }

            /// SHA-256 of the whole secret in lower-case hex: the value that is stored and looked up. A
            /// fast hash is enough, because a secret of at least 190 random bits cannot be guessed.
            #[must_use]
            pub fn hash(&self) -> String {
                $crate::token::sha256_hex(self.0.as_bytes())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    };
}
pub(crate) use secret;

/// Number of random bytes that a token is made from, and its length in characters.
pub const RANDOM_BYTES: usize = 40;

secret!(
    /// A secret of 40 base62 characters (238 bits).
    Token
);

impl Token {
    /// Makes a token from the bytes of a cryptographic random generator.
    #[must_use]
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        Self(base62(&random))
    }

    /// Reads a token; `None` if its length or alphabet is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = text.len() == RANDOM_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_valid.then(|| Self(text.to_owned()))
    }

    /// A second secret that is computed from this one and does not reveal it, such as the token by
    /// which a form proves that it belongs to the session of the cookie.
    #[must_use]
    pub fn derived(&self, purpose: &str) -> String {
        sha256_hex(format!("{purpose}:{}", self.0).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_parsed_and_its_debug_hides_it() {
        let token = Token::from_random(std::array::from_fn(|i| u8::try_from(i * 5).unwrap()));
        assert_eq!(Token::parse(token.expose()), Some(token.clone()));
        assert_ne!(token.derived("form"), token.hash());
        assert_ne!(token.derived("form"), token.derived("other"));
        assert!(!format!("{token:?}").contains(token.expose()));
        for bad in ["", "short", &"é".repeat(20), &"-".repeat(RANDOM_BYTES)] {
            assert_eq!(Token::parse(bad), None, "{bad}");
        }
    }
}
