//! A secret that the page after a redirect shows once.
//!
//! Invariant: the secret is in a cookie of its own, named by a random label that the address of the page holds.
//! The cookie is `HttpOnly`, is valid for a minute, and the page that shows it removes it.

use crate::cookies;

/// The parameter of the address that holds the label.
pub(crate) const FIELD: &str = "created";
/// The lifetime of the cookie. A redirect is followed at once.
const SECONDS: u32 = 60;

/// A secret and its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Once {
    label: String,
    secret: String,
}

impl Once {
    /// A secret of cookie characters: no space, comma, semicolon, quote or backslash.
    pub(crate) fn new(label: [u8; 8], secret: String) -> Self {
        Self { label: hex::encode(label), secret }
    }

    /// The secret of a label, if the browser has it.
    pub(crate) fn read(headers: &[Vec<u8>], label: &str, secure: bool) -> Option<Self> {
        let is_label = label.len() == 16 && label.bytes().all(|byte| byte.is_ascii_hexdigit());
        let secret = cookies::value(headers, &name(is_label.then_some(label)?, secure))?.to_owned();
        (!secret.is_empty()).then_some(Self { label: label.to_owned(), secret })
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The two parts of a secret that was made of them, joined by `~`.
    pub(crate) fn parts(&self) -> Option<(&str, &str)> {
        self.secret.split_once('~')
    }

    /// The `set-cookie` value that keeps it.
    pub(crate) fn set(&self, secure: bool) -> String {
        cookies::set(&name(&self.label, secure), &self.secret, &format!("; Max-Age={SECONDS}"), secure)
    }

    /// The `set-cookie` value that removes it.
    pub(crate) fn unset(&self, secure: bool) -> String {
        cookies::set(&name(&self.label, secure), "", "; Max-Age=0", secure)
    }
}

fn name(label: &str, secure: bool) -> String {
    format!("{}platen-once-{label}", cookies::prefix(secure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_by_its_label_only() {
        let once = Once::new([1; 8], "key_x~sk".to_owned());
        assert_eq!(once.parts(), Some(("key_x", "sk")));
        for secure in [false, true] {
            let set = once.set(secure);
            assert_eq!(set.contains("; Secure"), secure);
            let header = vec![set.split(';').next().unwrap().as_bytes().to_vec()];
            assert_eq!(Once::read(&header, once.label(), secure).as_ref(), Some(&once));
            for label in ["", "0202020202020202", "01010101010101zz", "0101010101010101; a"] {
                assert_eq!(Once::read(&header, label, secure), None);
            }
        }
        assert!(once.unset(true).starts_with("__Host-platen-once-0101010101010101=; "));
        assert_eq!(Once::read(&[b"platen-once-0101010101010101=".to_vec()], once.label(), false), None);
    }
}
