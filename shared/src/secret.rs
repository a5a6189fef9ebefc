//! What API keys, tokens and ids have in common: base62 text from random bytes, a `Debug` that hides
//! the secret, and SHA-256 as the stored form.

use sha2::{Digest, Sha256};

/// The digits of base62, in the order of their values.
pub(crate) const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// One base62 character for each byte. The bias of `byte % 62` costs 0.02 bits a character.
pub(crate) fn base62(random: &[u8]) -> String {
    random.iter().map(|&byte| char::from(BASE62[usize::from(byte) % BASE62.len()])).collect()
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
                $crate::secret::sha256_hex(self.0.as_bytes())
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
