//! Names of accounts, keys and templates, and what they look like, to find names that users cannot tell apart.
//!
//! Invariant: a name that is parsed has no characters that are invisible or that change the order in which others are
//! shown, so what users see is what is stored. Names that were stored before this was checked stay valid.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::UnicodeEmoji as _;

/// Maximum length of a name in Unicode scalar values.
pub const MAX_NAME_CHARS: usize = 200;

/// A name of 1 to 200 characters without surrounding white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);
text!(Name);

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is empty or too long.
    #[error("a name has 1 to {MAX_NAME_CHARS} characters")]
    Length,
    /// It contains a control character or a line separator.
    #[error("the name must not contain control characters. Remove U+{:04X}", u32::from(*.0))]
    Control(char),
    /// It contains a character that changes the direction of text.
    #[error("the name must not contain characters that change the direction of text. Remove U+{:04X}", u32::from(*.0))]
    Direction(char),
    /// It contains a character that is not shown.
    #[error("the name must not contain invisible characters. Remove U+{:04X}", u32::from(*.0))]
    Invisible(char),
}

impl Name {
    /// Removes surrounding white space and checks the rest.
    ///
    /// # Errors
    /// [`InvalidName`]
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name = text.trim();
        if !(1..=MAX_NAME_CHARS).contains(&name.chars().count()) {
            return Err(InvalidName::Length);
        }
        let mut previous = None;
        let mut rest = name.chars();
        while let Some(character) = rest.next() {
            check(character, previous, rest.clone().next())?;
            previous = Some(character);
        }
        Ok(Self(name.to_owned()))
    }

    /// A name that is stored already. It may have characters that [`parse`](Self::parse) refuses.
    #[must_use]
    pub fn stored(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Like [`parse`](Self::parse), except that the text may be the stored name unchanged.
    ///
    /// # Errors
    /// [`InvalidName`]
    pub fn parse_or_keep(text: &str, stored: Option<&str>) -> Result<Self, InvalidName> {
        match stored {
            Some(stored) if text.trim() == stored.trim() => Ok(Self::stored(stored)),
            _ => Self::parse(text),
        }
    }

    /// Appends `suffix`, and shortens the name where both would be too long.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let room = MAX_NAME_CHARS.saturating_sub(suffix.chars().count());
        Self(self.0.chars().take(room).chain(suffix.chars()).collect())
    }
}

/// A stored name within a sentence: characters that [`Name::parse`] refuses are replaced by U+FFFD.
#[must_use]
pub fn shown(stored: &str) -> String {
    stored
        .chars()
        .map(|it| if check(it, None, None).is_ok() { it } else { char::REPLACEMENT_CHARACTER })
        .collect()
}

fn check(character: char, previous: Option<char>, next: Option<char>) -> Result<(), InvalidName> {
    match character {
        '\u{2028}' | '\u{2029}' => Err(InvalidName::Control(character)),
        _ if character.is_control() => Err(InvalidName::Control(character)),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Err(InvalidName::Direction(character))
        }
        _ if is_invisible(character) && !is_part_of_a_sign(character, previous, next) => {
            Err(InvalidName::Invisible(character))
        }
        _ => Ok(()),
    }
}

/// The code points that Unicode lists as default ignorable, noncharacters, and those that are blank but not white space.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    ) || u32::from(character) & 0xfffe == 0xfffe
}

/// Whether an invisible character belongs to what is shown: joiners within words of scripts that use them and
/// within emoji, and selectors of a variant of the character before.
fn is_part_of_a_sign(character: char, previous: Option<char>, next: Option<char>) -> bool {
    let Some(previous) = previous else { return false };
    let joins_letters = |it: char| matches!(it, '\u{600}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1820}'..='\u{18aa}' | '\u{11000}'..='\u{11fff}');
    // Digits, `#` and `*` have the property as well, because they are parts of keycaps.
    let is_emoji = |it: char| !it.is_ascii() && it.is_emoji_char();
    match character {
        '\u{200c}' | '\u{200d}' if joins_letters(previous) => next.is_some_and(joins_letters),
        '\u{200d}' => (is_emoji(previous) || previous == '\u{fe0f}') && next.is_some_and(is_emoji),
        '\u{fe0e}' | '\u{fe0f}' if matches!(previous, '#' | '*' | '0'..='9') => next == Some('\u{20e3}'),
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(previous),
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => {
            matches!(previous, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
        _ => false,
    }
}

/// A name as users see it, without regard to case, compatibility forms and confusable characters (skeletons of
/// [UTS #39](https://www.unicode.org/reports/tr39/#Confusable_Detection)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// In one case, then by shape: `INVOICE` and `invoice`.
    folded: String,
    /// By shape, then in one case: `Invoice` and `lnvoice`, whose first letters differ in lower case.
    drawn: String,
}

impl Look {
    /// The look of a name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        // Its own characters, without the variants that compatibility decomposition removes.
        let name: String = name.nfkc().collect();
        Self { folded: one_space(&skeleton(&one_case(&name))), drawn: one_space(&one_case(&skeleton(&name))) }
    }

    /// Whether users can take one name for the other.
    #[must_use]
    pub fn resembles(&self, other: &Self) -> bool {
        self.folded == other.folded || self.drawn == other.drawn
    }
}

fn skeleton(text: &str) -> String {
    unicode_security::skeleton(text).collect()
}

/// Without regard to case and normal form. Upper case and then lower case makes `ß` equal to `SS`, and both small sigmas
/// equal.
pub(crate) fn one_case(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

/// Without repeated and surrounding white space.
fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_bounded() {
        assert_eq!(Name::parse("  a b ").unwrap().as_str(), "a b");
        assert_eq!(Name::parse(&"é".repeat(MAX_NAME_CHARS)).unwrap().with_suffix(" x").as_str().len(), 398);
        for bad in ["", "  ", "\u{3000}", &"x".repeat(MAX_NAME_CHARS + 1)] {
            assert_eq!(Name::parse(bad), Err(InvalidName::Length), "{bad}");
        }
    }

    #[test]
    fn characters_that_are_not_shown_are_refused() {
        for control in ['\0', '\n', '\t', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}', '\u{2028}', '\u{2029}'] {
            assert_eq!(Name::parse(&format!("a{control}b")), Err(InvalidName::Control(control)));
        }
        for direction in
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}"
                .chars()
        {
            for name in [format!("{direction}eerf"), format!("a{direction}b"), format!("אב{direction}")] {
                assert_eq!(Name::parse(&name), Err(InvalidName::Direction(direction)));
            }
        }
        for invisible in "\u{ad}\u{34f}\u{115f}\u{180e}\u{200b}\u{200c}\u{200d}\u{2060}\u{2063}\u{206a}\u{2800}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{fffe}\u{1d173}\u{e0001}\u{e0061}\u{e01ef}\u{10ffff}".chars() {
            for name in [format!("fr{invisible}ee"), format!("free{invisible}"), format!("{invisible}free")] {
                assert_eq!(Name::parse(&name), Err(InvalidName::Invisible(invisible)), "{invisible:?}");
            }
        }
        let error = Name::parse("a\u{202e}b").unwrap_err().to_string();
        assert!(error.contains("the name") && error.ends_with("Remove U+202E"), "{error}");
    }

    #[test]
    fn words_and_emoji_of_several_characters_are_names() {
        for name in [
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "👩\u{200d}💻 web",
            "❤\u{fe0f} and ❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3}",
            "©\u{fe0f}",
            "葛\u{e0100}城",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}🚀",
            "↔\u{fe0f} ㊙\u{fe0f} ™\u{fe0e}",
            "Ünï – “x” <b> & 'y'",
            "e\u{301}",
            "שלום a",
        ] {
            assert_eq!(Name::parse(name).as_ref().map(Name::as_str), Ok(name));
        }
        for bad in [
            "a\u{200d}💻",
            "💻\u{200d}",
            "1\u{fe0f}",
            "م\u{200c}",
            "م\u{200c}\u{200c}م",
            "💻\u{200d}\u{200d}💻",
            "か\u{200d}な",
            "カ\u{200d}ナ",
            "か\u{fe0f}",
            "ㄅ\u{200d}ㄆ",
            "ㄱ\u{200d}ㄴ",
            "→\u{200d}∀",
            "─\u{fe0e}",
            "①\u{200d}㈱",
            "🀀\u{200d}🀁",
            "💻\u{200d}1",
        ] {
            assert!(matches!(Name::parse(bad), Err(InvalidName::Invisible(_))), "{bad:?}");
        }
    }

    #[test]
    fn stored_names_stay_valid() {
        let old = "eerf\u{202e}";
        assert_eq!(Name::parse_or_keep(&format!(" {old} "), Some(old)).unwrap().as_str(), old);
        Name::parse_or_keep("x\u{202e}", Some(old)).unwrap_err();
        Name::parse_or_keep("", None).unwrap_err();
        assert_eq!(Name::stored(old).with_suffix(" (copy)").as_str(), "eerf\u{202e} (copy)");
        assert_eq!(shown(old), "eerf\u{fffd}");
    }

    fn resemble(one: &str, other: &str) -> bool {
        let (one, other) = (Look::of(one), Look::of(other));
        assert_eq!(one.resembles(&other), other.resembles(&one));
        one.resembles(&other)
    }

    #[test]
    fn names_that_users_cannot_tell_apart_resemble_each_other() {
        for (name, other) in [
            ("free", "free"),
            ("free", "FREE"),
            ("free", "Fr\u{435}\u{435}"), // Cyrillic
            ("FREE", "FR\u{415}\u{415}"),
            ("free", "ｆｒｅｅ"),
            ("free", "𝐟𝐫𝐞𝐞"),
            ("Invoice", "lnvoice"),
            ("Invoice", "1nvoice"),
            ("invoice", "INVOICE"),
            ("ABE", "ΑΒΕ"),
            ("abe", "ΑΒΕ"),
            ("modem", "rnodern"),
            ("Café", "CAFE\u{301}"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("a  b", "a b"),
            ("a\u{a0}b", "a b"),
            ("a\u{2010}b", "a-b"),
            ("ﬁnal", "final"),
            ("x\u{200b}y", "xy"),
            ("v0", "vO"),
        ] {
            assert!(resemble(name, other), "{name} {other}: {:?} {:?}", Look::of(name), Look::of(other));
        }
    }

    #[test]
    fn names_that_differ_do_not_resemble_each_other() {
        for (name, other) in [
            ("free", "free 2"),
            ("Cafe", "Café"),
            ("web", "wed"),
            ("prod-1", "prod-2"),
            ("請求書", "請求"),
            ("か", "が"),
            ("north", "south"),
        ] {
            assert!(!resemble(name, other), "{name} {other}");
        }
    }
}
