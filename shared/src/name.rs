//! Names of accounts, keys and templates.
//!
//! Invariant: a name is in NFC, and has no characters that are invisible or that change the order in which others are
//! shown, so what users see is what is stored.

use unicode_normalization::UnicodeNormalization as _;

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
    /// Removes surrounding white space, and checks the rest in NFC.
    ///
    /// # Errors
    /// [`InvalidName`]
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name: String = text.trim().nfc().collect();
        if !(1..=MAX_NAME_CHARS).contains(&name.chars().count()) {
            return Err(InvalidName::Length);
        }
        let mut previous = None;
        let mut rest = name.chars();
        while let Some(character) = rest.next() {
            check(character, previous, rest.clone().next())?;
            previous = Some(character);
        }
        Ok(Self(name))
    }

    /// A name that is stored, and was [parsed](Self::parse) before.
    #[must_use]
    pub fn stored(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Appends `suffix`, and shortens the name where both would be too long.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let room = MAX_NAME_CHARS.saturating_sub(suffix.chars().count());
        Self(self.0.chars().take(room).chain(suffix.chars()).collect())
    }
}

/// Whether a character is shown as it is, whatever is beside it.
pub(crate) fn is_shown(character: char) -> bool {
    check(character, None, None).is_ok()
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
    let is_emoji = |it: char| matches!(it, '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_bounded() {
        assert_eq!(Name::parse("  a b ").unwrap().as_str(), "a b");
        assert_eq!(Name::parse("e\u{301}").unwrap().as_str(), "é");
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
            "葛\u{e0100}城",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}🚀",
            "Ünï – “x” <b> & 'y'",
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
}
