//! Types of text, each with its rule.

use std::borrow::Cow;

/// The rule that a text breaks. `Display` continues after the name of its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidText(Cow<'static, str>);

/// Defines types of text, each with a function that gives the text as it is kept. `Debug` shows the size only, because
/// content of the caller must not appear in logs.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident = $kept:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({} bytes)"), self.0.len())
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::text::InvalidText;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                let kept: fn(String) -> Result<String, Self::Error> = $kept;
                kept(text).map(Self)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }
    )*};
}
pub(crate) use texts;

/// The text, if it is valid.
pub(crate) fn kept(
    text: String,
    is_valid: impl Fn(&str) -> bool,
    rule: impl Into<Cow<'static, str>>,
) -> Result<String, InvalidText> {
    if is_valid(&text) { Ok(text) } else { Err(InvalidText(rule.into())) }
}

/// A text of at most `max` bytes of UTF-8.
pub(crate) fn of_bytes(text: String, max: usize) -> Result<String, InvalidText> {
    kept(text, |text| text.len() <= max, format!("must be at most {max} bytes of UTF-8"))
}

/// A text of `min` to `max` characters.
pub(crate) fn of_chars(text: String, min: usize, max: usize) -> Result<String, InvalidText> {
    let is_valid = |text: &str| (min..=max).contains(&text.chars().count());
    kept(text, is_valid, format!("must have {min} to {max} characters"))
}

/// Maximum number of characters of a caller's name in a message.
pub(crate) const MAX_QUOTED_CHARS: usize = 64;

/// A caller's name for a message; a long one ends with an ellipsis.
pub(crate) fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_QUOTED_CHARS {
        name.to_owned()
    } else {
        name.chars().take(MAX_QUOTED_CHARS).chain(['…']).collect()
    }
}
