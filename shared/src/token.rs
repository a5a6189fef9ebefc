//! Secrets in links and cookies: invites and sessions.
//!
//! Invariant: the secret leaves a [`Token`] only through [`Token::expose`]; what is stored is its
//! hash, so that whoever reads the database cannot come in with what stands there.

use std::fmt;

use crate::key::{base62, sha256_hex};

/// Random bytes a token is made of.
pub const RANDOM_BYTES: usize = 40;

/// A secret of 40 base62 characters (238 bits).
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Makes a token from the bytes of a cryptographic random generator.
    #[must_use]
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        Self(base62(&random))
    }

    /// Reads a token; `None` if it does not have the shape of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let good = text.len() == RANDOM_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        good.then(|| Self(text.to_owned()))
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is stored and looked up: SHA-256 in lower-case hex.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256_hex(self.0.as_bytes())
    }

    /// Another secret that follows from this one and from which this one does not follow: what
    /// a form carries to show that it comes from the holder of the cookie.
    #[must_use]
    pub fn derived(&self, purpose: &str) -> String {
        sha256_hex(format!("{purpose}:{}", self.0).as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_shows_nothing_of_itself() {
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
