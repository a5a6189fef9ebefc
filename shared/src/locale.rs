//! Languages as BCP 47 tags, and names of time zones.

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

/// The names of the IANA time zone database (release 2025b), sorted, one on each line. The browser knows all of them.
const NAMES: &str = include_str!("time_zone_names.txt");

/// The name of a time zone of the IANA database, such as `Europe/Berlin`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeZone(String);

/// A name that is not in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the name of an IANA time zone, such as \"Europe/Berlin\"")]
pub struct UnknownTimeZone;

impl TimeZone {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// All names, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.lines()
    }
}

impl TryFrom<String> for TimeZone {
    type Error = UnknownTimeZone;

    fn try_from(name: String) -> Result<Self, UnknownTimeZone> {
        if Self::names().any(|known| known == name) { Ok(Self(name)) } else { Err(UnknownTimeZone) }
    }
}

impl From<TimeZone> for String {
    fn from(zone: TimeZone) -> Self {
        zone.0
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

    #[test]
    fn only_names_of_the_database_are_time_zones() {
        for name in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12"] {
            assert_eq!(TimeZone::try_from(name.to_owned()).unwrap().as_str(), name);
        }
        for name in ["", "utc", "Berlin", "Europe/Berlin ", "+01:00", "Europe", "localtime", "posix/UTC"] {
            assert_eq!(TimeZone::try_from(name.to_owned()), Err(UnknownTimeZone), "{name}");
        }
        assert!(TimeZone::names().is_sorted());
    }
}
