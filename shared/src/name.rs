//! Names of accounts, keys and templates.

use crate::text::text;

/// Maximum length of a name in Unicode scalar values.
pub const MAX_NAME_CHARS: usize = 200;

/// A name of 1 to 200 characters, without control characters and without surrounding white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);
text!(Name);

/// The text is empty, too long, or contains control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to {MAX_NAME_CHARS} characters, and no control characters")]
pub struct InvalidName;

impl Name {
    /// Removes surrounding white space and checks the rest.
    ///
    /// # Errors
    /// [`InvalidName`]
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name = text.trim();
        let is_valid =
            (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && !name.contains(char::is_control);
        if is_valid { Ok(Self(name.to_owned())) } else { Err(InvalidName) }
    }

    /// Appends `suffix`, and shortens the name where both would be too long.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let room = MAX_NAME_CHARS.saturating_sub(suffix.chars().count());
        Self(self.0.chars().take(room).chain(suffix.chars()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_bounded() {
        assert_eq!(Name::parse("  a b ").unwrap().as_str(), "a b");
        assert_eq!(Name::parse(&"é".repeat(MAX_NAME_CHARS)).unwrap().with_suffix(" x").as_str().len(), 398);
        for bad in ["", "  ", "a\nb", "a\0", &"x".repeat(MAX_NAME_CHARS + 1)] {
            assert_eq!(Name::parse(bad), Err(InvalidName), "{bad}");
        }
    }
}
