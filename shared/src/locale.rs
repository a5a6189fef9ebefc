//! Languages as BCP 47 tags.

use serde::{Deserialize, Serialize};

/// A well-formed BCP 47 language tag in its canonical form, such as `de-CH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Locale(String);

/// Text that is not a language tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a BCP 47 language tag, such as \"de-CH\"")]
pub struct InvalidLocale;

/// Longer than every tag in use; RFC 5646, section 4.4.1, expects 35.
const MAX_CHARS: usize = 100;

impl Locale {
    /// The tag.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Locale {
    type Error = InvalidLocale;

    fn try_from(text: String) -> Result<Self, InvalidLocale> {
        let is_tag = text.len() <= MAX_CHARS && !text.contains('_');
        let locale: icu_locale_core::Locale =
            is_tag.then(|| text.parse().ok()).flatten().ok_or(InvalidLocale)?;
        // A private-use tag has no language.
        if locale.id.language.is_unknown() { Err(InvalidLocale) } else { Ok(Self(locale.to_string())) }
    }
}

impl From<Locale> for String {
    fn from(locale: Locale) -> Self {
        locale.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_well_formed_and_canonical() {
        for (text, tag) in [
            ("en", "en"),
            ("DE-ch", "de-CH"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("ar-EG-u-nu-latn", "ar-EG-u-nu-latn"),
            ("sl-rozaj-biske", "sl-biske-rozaj"),
        ] {
            let locale = Locale::try_from(text.to_owned()).unwrap();
            assert_eq!(locale.as_str(), tag);
            assert_eq!(Locale::try_from(tag.to_owned()), Ok(locale));
        }
        for text in ["", "e", "en_US", "en-", "-en", "english language", "12", "und", "x-y", "de-\u{e9}"] {
            assert_eq!(Locale::try_from(text.to_owned()), Err(InvalidLocale), "{text}");
        }
    }
}
