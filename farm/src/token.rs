//! The shared secret of edge and farm.
//!
//! Invariant: it is never empty or printed, and is compared in constant time.

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

/// The token is empty or white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the farm's token is empty; set PLATEN_FARM_TOKEN or --token-file to a long random text")]
pub struct EmptyToken;

/// The bearer token that a farm accepts.
#[derive(Debug, Clone)]
pub struct FarmToken(SecretString);

impl FarmToken {
    /// Creates a token, without white space around it, because files end with a newline.
    ///
    /// # Errors
    /// [`EmptyToken`].
    pub fn new(text: impl AsRef<str>) -> Result<Self, EmptyToken> {
        match text.as_ref().trim() {
            "" => Err(EmptyToken),
            token => Ok(Self(token.into())),
        }
    }

    /// Whether the value of an `authorization` header contains this token. The comparison's time reveals
    /// only the token's length.
    #[must_use]
    pub fn accepts(&self, authorization: &[u8]) -> bool {
        let Some((scheme, credentials)) = authorization.split_at_checked("Bearer ".len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"Bearer ") && credentials.ct_eq(self.0.expose_secret().as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_accepted() {
        let token = FarmToken::new(" s3cret\n").unwrap();
        for good in ["Bearer s3cret", "bearer s3cret"] {
            assert!(token.accepts(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cretx",
            "Bearer S3CRET",
            "Basic s3cret",
            "s3cret",
        ] {
            assert!(!token.accepts(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn an_empty_token_is_refused_and_a_token_is_not_printed() {
        assert_eq!(FarmToken::new(" \n").unwrap_err(), EmptyToken);
        assert!(!format!("{:?}", FarmToken::new("s3cret").unwrap()).contains("s3cret"));
    }
}
