//! Secrets in invite links and session cookies.
//!
//! Invariant: the database stores only [`Token::hash`], so that its content does not let anyone sign in.

use crate::secret::{base62, secret, sha256_hex};

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
