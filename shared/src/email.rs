//! The e-mail address that a person signs in with.

use std::fmt;

/// Longest address, in bytes (RFC 5321 4.5.3.1).
const BYTES: usize = 254;

/// An address in lower case. No mail is ever sent, so its shape is all that is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email(String);

/// Not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an e-mail address looks like name@example.com")]
pub struct InvalidEmail;

impl Email {
    /// Takes an address as somebody wrote it.
    ///
    /// # Errors
    /// [`InvalidEmail`]
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        let text = text.trim().to_lowercase();
        let odd = |c: char| c.is_whitespace() || c.is_control() || "<>\"'(),;:\\".contains(c);
        let good = text.len() <= BYTES
            && !text.contains(odd)
            && text
                .split_once('@')
                .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
        if good { Ok(Self(text)) } else { Err(InvalidEmail) }
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_lower_case_and_have_two_sides() {
        assert_eq!(Email::parse(" Ann@Example.COM ").unwrap().as_str(), "ann@example.com");
        assert!(Email::parse("ops@localhost").is_ok());
        for bad in
            ["", "a", "@b", "a@", "a@b@c", "a b@c", "<a@b>", "a@b\n", &format!("{}@b", "a".repeat(254))]
        {
            let expected = if bad == "a@b\n" { Email::parse("a@b") } else { Err(InvalidEmail) };
            assert_eq!(Email::parse(bad), expected, "{bad}");
        }
    }
}
