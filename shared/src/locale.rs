//! Languages as BCP 47 tags, and names of time zones.

use crate::text::{InvalidText, kept, texts};

texts! {
    /// A well-formed BCP 47 language tag in its canonical form, such as `de-CH`.
    Locale = locale;
    /// The name of a time zone of the IANA database, such as `Europe/Berlin`.
    TimeZone = |text| {
        let is_known = |text: &str| TimeZone::names().any(|known| known == text);
        kept(text, is_known, "must be the name of an IANA time zone, such as \"Europe/Berlin\"")
    };
}

/// Longer than every tag in use; RFC 5646, section 4.4.1, expects 35.
const MAX_CHARS: usize = 100;

fn locale(text: String) -> Result<String, InvalidText> {
    let is_tag = text.len() <= MAX_CHARS && !text.contains('_');
    let locale = is_tag.then(|| text.parse::<icu_locale_core::Locale>().ok()).flatten();
    // A private-use tag has no language.
    match locale.filter(|locale| !locale.id.language.is_unknown()) {
        Some(locale) => Ok(locale.to_string()),
        None => kept(text, |_| false, "must be a BCP 47 language tag, such as \"de-CH\""),
    }
}

/// The names of the IANA time zone database (release 2025b), sorted, one on each line. The browser knows all of them.
const NAMES: &str = include_str!("time_zone_names.txt");

impl TimeZone {
    /// All names, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.lines()
    }
}
