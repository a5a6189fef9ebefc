//! Passwords: what may be one, and how one is kept.
//!
//! Invariant: a password is never stored, shown or logged; what is stored is Argon2id's hash with
//! its salt. Checking takes the same time whether or not there is a person to check against.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use subtle::ConstantTimeEq as _;

use crate::hex;

/// Random bytes a salt is made of.
pub const SALT_BYTES: usize = 16;
/// Fewest characters.
pub const CHARS_MIN: usize = 10;
/// Most characters: hashing reads all of them.
pub const CHARS_MAX: usize = 200;

const HASH_BYTES: usize = 32;
/// OWASP's first choice for Argon2id with little memory: 19 MiB, two passes, one lane. About as
/// much as a component can spend on one sign-in; `ARCHITECTURE.md` has the figure.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// A password as somebody typed it.
pub struct Password(String);

/// Why a password is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// Too short or too long.
    #[error("A password has {CHARS_MIN} to {CHARS_MAX} characters")]
    Length,
    /// The first to be tried.
    #[error("A password must not be the e-mail address")]
    Email,
    /// Typed twice, and not the same.
    #[error("The two passwords are not the same")]
    Unlike,
}

impl Password {
    /// Takes what was typed into a sign-in form, whatever it is.
    #[must_use]
    pub fn typed(text: &str) -> Self {
        Self(text.chars().take(CHARS_MAX + 1).collect())
    }

    /// Takes a new password, typed twice.
    ///
    /// # Errors
    /// [`BadPassword`]
    pub fn new(text: &str, again: &str, email: &str) -> Result<Self, BadPassword> {
        if !(CHARS_MIN..=CHARS_MAX).contains(&text.chars().count()) {
            return Err(BadPassword::Length);
        }
        if text.eq_ignore_ascii_case(email) {
            return Err(BadPassword::Email);
        }
        if text == again { Ok(Self(text.to_owned())) } else { Err(BadPassword::Unlike) }
    }

    /// What is stored, in the form `$argon2id$v=19$m=…,t=…,p=…$salt$hash` with hexadecimal parts.
    #[must_use]
    pub fn hash(&self, salt: [u8; SALT_BYTES]) -> String {
        let hash = self.argon2id(&salt);
        format!("{}{}${}", prefix(), hex::encode(&salt), hex::encode(&hash))
    }

    /// Whether this is the password of what is stored. Without anything stored the answer is no,
    /// after as much work.
    #[must_use]
    pub fn matches(&self, stored: Option<&str>) -> bool {
        let parsed = stored.and_then(|stored| {
            let (salt, hash) = stored.strip_prefix(&prefix())?.split_once('$')?;
            Some((hex::decode::<SALT_BYTES>(salt)?, hex::decode::<HASH_BYTES>(hash)?))
        });
        let there = parsed.is_some();
        let (salt, expected) = parsed.unwrap_or(([0; SALT_BYTES], [0; HASH_BYTES]));
        bool::from(self.argon2id(&salt).ct_eq(&expected)) && there
    }

    fn argon2id(&self, salt: &[u8]) -> [u8; HASH_BYTES] {
        let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(HASH_BYTES)).expect("constants in bounds");
        let mut hash = [0; HASH_BYTES];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(self.0.as_bytes(), salt, &mut hash)
            .expect("lengths in bounds");
        hash
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

fn prefix() -> String {
    format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_password_matches() {
        let password = Password::new("correct horse", "correct horse", "a@b").unwrap();
        let stored = password.hash([7; SALT_BYTES]);
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$07070707"), "{stored}");
        assert!(!stored.contains("horse"));
        assert!(password.matches(Some(&stored)));
        assert!(!Password::typed("correct horse ").matches(Some(&stored)));
        assert!(!password.matches(None));
        assert!(!password.matches(Some("$argon2id$damaged")));
    }

    #[test]
    fn bad_passwords_are_told_why() {
        let new = |text: &str, again: &str| Password::new(text, again, "someone@example.com").unwrap_err();
        assert_eq!(new("short", "short"), BadPassword::Length);
        assert_eq!(new(&"x".repeat(201), ""), BadPassword::Length);
        assert_eq!(new("Someone@example.com", "Someone@example.com"), BadPassword::Email);
        assert_eq!(new("long enough", "long enouhg"), BadPassword::Unlike);
    }
}
