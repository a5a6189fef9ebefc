//! The secret that edge and farm share.
//!
//! Invariant: never empty, never printed, compared in constant time.

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

/// A token with nothing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the farm's token is empty; set PLATEN_FARM_TOKEN or --token-file to a long random text")]
pub struct EmptyToken;

/// The bearer token of a farm.
#[derive(Debug, Clone)]
pub struct FarmToken(SecretString);

impl FarmToken {
    /// Takes a token; white space around it does not count, since files end with a newline.
    ///
    /// # Errors
    /// [`EmptyToken`].
    pub fn new(text: impl AsRef<str>) -> Result<Self, EmptyToken> {
        match text.as_ref().trim() {
            "" => Err(EmptyToken),
            token => Ok(Self(token.into())),
        }
    }

    /// Whether an `authorization` header's value carries this token. The time taken tells the
    /// token's length and nothing more.
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
    fn an_empty_token_is_none_and_a_token_is_not_shown() {
        assert_eq!(FarmToken::new(" \n").unwrap_err(), EmptyToken);
        assert!(!format!("{:?}", FarmToken::new("s3cret").unwrap()).contains("s3cret"));
    }
}
