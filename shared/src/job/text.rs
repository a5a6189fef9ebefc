//! Texts of a job that are limited in size.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;

/// Text of at most `MAX` bytes of UTF-8.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LimitedText<const MAX: usize>(String);

/// The markup of a header or a footer.
pub type HeaderHtml = LimitedText<{ limits::MAX_HEADER_BYTES }>;
/// A style sheet.
pub type StyleText = LimitedText<{ limits::MAX_CSS_BYTES }>;

impl<const MAX: usize> LimitedText<MAX> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for LimitedText<MAX> {
    /// Shows the size only, because content of the caller must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitedText({} bytes)", self.0.len())
    }
}

/// A text of more bytes than its maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be at most {max} bytes of UTF-8")]
pub struct TextTooLarge {
    max: usize,
}

impl<const MAX: usize> TryFrom<String> for LimitedText<MAX> {
    type Error = TextTooLarge;

    fn try_from(text: String) -> Result<Self, TextTooLarge> {
        if text.len() <= MAX { Ok(Self(text)) } else { Err(TextTooLarge { max: MAX }) }
    }
}

impl<const MAX: usize> From<LimitedText<MAX>> for String {
    fn from(text: LimitedText<MAX>) -> Self {
        text.0
    }
}

/// Text of `MIN` to `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShortText<const MAX: usize, const MIN: usize = 1>(String);

/// A CSS selector. Only the browser knows whether it is valid.
pub type Selector = ShortText<{ limits::MAX_SELECTOR_CHARS }>;
/// A JavaScript expression. Only the browser knows whether it is valid.
pub type Expression = ShortText<{ limits::MAX_EXPRESSION_CHARS }>;

impl<const MAX: usize, const MIN: usize> ShortText<MAX, MIN> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A user agent of 1 to [`limits::MAX_USER_AGENT_CHARS`] characters of printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserAgent(String);

impl UserAgent {
    /// The user agent as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A user agent that is empty, too long or not printable ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to {} characters of printable ASCII", limits::MAX_USER_AGENT_CHARS)]
pub struct InvalidUserAgent;

impl TryFrom<String> for UserAgent {
    type Error = InvalidUserAgent;

    fn try_from(text: String) -> Result<Self, InvalidUserAgent> {
        let is_valid = (1..=limits::MAX_USER_AGENT_CHARS).contains(&text.len())
            && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if is_valid { Ok(Self(text)) } else { Err(InvalidUserAgent) }
    }
}

impl From<UserAgent> for String {
    fn from(agent: UserAgent) -> Self {
        agent.0
    }
}

/// A text that has fewer or more characters than it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have {min} to {max} characters")]
pub struct TextLength {
    min: usize,
    max: usize,
}

impl<const MAX: usize, const MIN: usize> TryFrom<String> for ShortText<MAX, MIN> {
    type Error = TextLength;

    fn try_from(text: String) -> Result<Self, TextLength> {
        let is_valid = (MIN..=MAX).contains(&text.chars().count());
        if is_valid { Ok(Self(text)) } else { Err(TextLength { min: MIN, max: MAX }) }
    }
}

impl<const MAX: usize, const MIN: usize> From<ShortText<MAX, MIN>> for String {
    fn from(text: ShortText<MAX, MIN>) -> Self {
        text.0
    }
}
