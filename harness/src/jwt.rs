//! A key pair and a token for a libSQL server that requires one.

use anyhow::{Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};

/// The public key for the server and a token for its client.
#[derive(Debug)]
pub struct Credentials {
    /// The public key as sqld's `--auth-jwt-key-file` takes it: URL-safe base64.
    pub public_key: String,
    /// A token (RFC 7519) that allows reading and writing.
    pub token: String,
}

impl Credentials {
    /// Generates a key pair and signs a token with it.
    pub fn generate() -> Result<Self> {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| anyhow!("no randomness"))?;
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|error| anyhow!("{error}"))?;
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(r#"{"alg":"EdDSA","typ":"JWT"}"#), part(r#"{"a":"rw"}"#));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
        Ok(Self {
            public_key: URL_SAFE_NO_PAD.encode(pair.public_key()),
            token: format!("{signed}.{signature}"),
        })
    }
}
