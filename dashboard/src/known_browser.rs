//! Browsers in which a user has signed in before, which have sign-in attempts of their own: those of strangers do not shut
//! the user out.
//!
//! Invariant: a cookie is valid for the user whose password was the right one when it was set, until the password changes.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::cookies;

const NAME: &str = "platen-browser";
/// Bytes of the number of a browser.
pub(crate) const ID_BYTES: usize = 16;
/// How long a browser is known.
const MAX_AGE_SECONDS: u32 = 180 * 24 * 60 * 60;

/// The browser of the `cookie` headers, if this user has signed in there.
pub(crate) fn read(headers: &[Vec<u8>], secure: bool, email: &str, password_hash: &str) -> Option<String> {
    let (id, proof) = cookies::value(headers, NAME, secure)?.split_once('.')?;
    let is_valid = id.len() == 2 * ID_BYTES
        && proof.as_bytes().ct_eq(self::proof(id, email, password_hash).as_bytes()).into();
    is_valid.then(|| id.to_owned())
}

/// The `set-cookie` value for a browser in which this user has signed in.
pub(crate) fn set(id: &str, secure: bool, email: &str, password_hash: &str) -> String {
    let value = format!("{id}.{}", proof(id, email, password_hash));
    cookies::set(NAME, &value, &format!("; Max-Age={MAX_AGE_SECONDS}"), secure)
}

/// Only the server knows the password's hash, which has a random salt. The parts that a client chooses have fixed lengths
/// or are its own e-mail address, so that no other parts give the same text.
fn proof(id: &str, email: &str, password_hash: &str) -> String {
    hex::encode(Sha256::digest(format!("known browser:{password_hash}:{id}:{email}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_known_to_one_user_until_the_password_changes() {
        let id = "0123456789abcdef0123456789abcdef";
        let set = set(id, false, "a@b.example", "$argon2id$1");
        let headers = vec![set.split(';').next().unwrap().as_bytes().to_vec()];
        let read = |email: &str, hash: &str| read(&headers, false, email, hash);
        assert_eq!(read("a@b.example", "$argon2id$1").as_deref(), Some(id));
        assert_eq!(read("a@b.example", "$argon2id$2"), None);
        assert_eq!(read("b@b.example", "$argon2id$1"), None);
        for wrong in ["", ".", id, "x.y"] {
            let headers = vec![format!("platen-browser={wrong}").into_bytes()];
            assert_eq!(super::read(&headers, false, "a@b.example", "$argon2id$1"), None, "{wrong}");
        }
    }
}
