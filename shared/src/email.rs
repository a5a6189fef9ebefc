//! The e-mail address with which a user signs in.

use crate::name;

/// Maximum length of an address (RFC 5321 4.5.3.1).
const MAX_EMAIL_BYTES: usize = 254;

/// An address in lower case. Platen sends no e-mail, so only the shape is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email(String);
text!(Email);

/// The text does not have the shape of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an e-mail address looks like name@example.com")]
pub struct InvalidEmail;

impl Email {
    /// Removes surrounding white space, converts to lower case and checks the shape.
    ///
    /// # Errors
    /// [`InvalidEmail`]
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        let text = text.trim().to_lowercase();
        let is_forbidden = |c: char| c.is_whitespace() || c.is_control() || "<>\"'(),;:\\".contains(c);
        let is_valid = text.len() <= MAX_EMAIL_BYTES
            && !text.contains(is_forbidden)
            && text.chars().all(name::is_shown)
            && text
                .split_once('@')
                .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
        if is_valid { Ok(Self(text)) } else { Err(InvalidEmail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_lower_case_and_have_a_name_and_a_host() {
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
