//! Password rules and password hashes.
//!
//! Invariant: a password is never stored, shown or logged, only its Argon2id hash (a PHC string).
//! An unknown user costs a sign-in the same work as a known one. Only the forms of
//! [`takes_password`](platen_shared::dashboard_path::takes_password) hash passwords: `platen up` limits how many of these run at
//! once, and an instance hashes one at a time.

use std::{collections::BTreeSet, fmt};

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher as _, PasswordVerifier as _, Version};

pub(crate) const SALT_BYTES: usize = 16;
/// Fewest characters of a new password.
pub(crate) const MIN_CHARS: usize = 10;
/// Most characters of a new password: hashing reads all of them.
pub(crate) const MAX_CHARS: usize = 200;

const HASH_BYTES: usize = 32;
const ALGORITHM: Algorithm = Algorithm::Argon2id;
const VERSION: Version = Version::V0x13;
/// OWASP's minimum configuration of Argon2id: 19 MiB, two passes, one lane.
const PARAMS: Params = match Params::new(19_456, 2, 1, Some(HASH_BYTES)) {
    Ok(params) => params,
    Err(_) => panic!("the parameters are within Argon2's bounds"),
};

/// A password in plain text.
pub(crate) struct Password(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidPassword {
    #[error("The password must have {MIN_CHARS} to {MAX_CHARS} characters")]
    Length,
    /// The e-mail address, which is the first guess of an attacker.
    #[error("The password must not be the e-mail address")]
    Email,
    /// A password that is in the lists of attackers, or made of few parts of them.
    #[error("This password is easy to guess. Take several words, or let a password manager make one")]
    Guessable,
    #[error("The new password must not be the current one")]
    Unchanged,
    #[error("The passwords do not match")]
    Mismatch,
}

impl Password {
    /// Takes the password of a sign-in form without checking the rules for new ones.
    pub(crate) fn entered(text: &str) -> Self {
        Self(text.chars().take(MAX_CHARS + 1).collect())
    }

    /// Takes a new password and its repetition. `current` is the one before, if it is known.
    pub(crate) fn new(
        text: &str,
        repeated: &str,
        email: &str,
        current: Option<&str>,
    ) -> Result<Self, InvalidPassword> {
        if !(MIN_CHARS..=MAX_CHARS).contains(&text.chars().count()) {
            return Err(InvalidPassword::Length);
        }
        if text.eq_ignore_ascii_case(email) {
            return Err(InvalidPassword::Email);
        }
        if current == Some(text) {
            return Err(InvalidPassword::Unchanged);
        }
        if is_guessable(text, email) {
            return Err(InvalidPassword::Guessable);
        }
        if text == repeated { Ok(Self(text.to_owned())) } else { Err(InvalidPassword::Mismatch) }
    }

    /// The PHC string to store: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
    pub(crate) fn hash(&self, salt: [u8; SALT_BYTES]) -> String {
        let Ok(hash) = argon2id().hash_password_with_salt(self.0.as_bytes(), &salt) else {
            unreachable!("the parameters and the salt are within Argon2's bounds")
        };
        hash.to_string()
    }

    /// Whether this is the password of a stored hash, checked with the parameters in that hash. `None` (an
    /// unknown user) and a damaged hash do not match, after the work of hashing with the current parameters.
    pub(crate) fn matches(&self, stored: Option<&str>) -> bool {
        match stored.and_then(|stored| PasswordHash::new(stored).ok()) {
            Some(hash) => argon2id().verify_password(self.0.as_bytes(), &hash).is_ok(),
            None => std::hint::black_box(self.hash([0; SALT_BYTES])).is_empty(),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Common words, as they lead the published lists of leaked passwords.
const COMMON: &str = include_str!("common_passwords.txt");
/// A text of fewer different characters is a repetition.
const MIN_DIFFERENT_CHARS: usize = 5;
/// Shorter words are not looked for in a password.
const MIN_WORD_CHARS: usize = 3;
/// A number of this many digits is not one that is tried first, such as a date or a telephone number.
const MIN_DIGITS: usize = 14;

/// Whether it is what attackers try first: repetitions, neighbours on a keyboard or in the alphabet, and common words or
/// parts of the e-mail address, once or several times, with digits and signs around them.
fn is_guessable(text: &str, email: &str) -> bool {
    let text = text.to_lowercase();
    let different: BTreeSet<char> = text.chars().collect();
    if different.len() < MIN_DIFFERENT_CHARS {
        return true;
    }
    let email = email.to_lowercase();
    let mut words: Vec<&str> = COMMON.lines().chain(email.split(['@', '.', '-', '_', '+'])).collect();
    words.retain(|word| word.chars().count() >= MIN_WORD_CHARS);
    // Of two words that match, the longer one.
    words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
    let without = words.iter().fold(plain_letters(&text), |rest, word| rest.replace(word, ""));
    let count = |is: fn(char) -> bool| without.chars().filter(|it| is(*it)).count();
    count(char::is_alphabetic) < MIN_WORD_CHARS && count(|it| it.is_ascii_digit()) < MIN_DIGITS
}

/// Puts letters in place of the digits and signs that are used for them inside of words.
fn plain_letters(text: &str) -> String {
    let letter = |character| match character {
        '0' => 'o',
        '@' | '4' => 'a',
        '3' => 'e',
        '$' | '5' => 's',
        '!' | '1' => 'i',
        other => other,
    };
    let characters: Vec<char> = text.chars().collect();
    let is_inside = |index: usize| {
        let at = |index: Option<usize>| {
            index.and_then(|index| characters.get(index)).is_some_and(|it| it.is_alphabetic())
        };
        at(index.checked_sub(1)) && at(index.checked_add(1))
    };
    characters
        .iter()
        .enumerate()
        .map(|(index, it)| if is_inside(index) { letter(*it) } else { *it })
        .collect()
}

fn argon2id() -> Argon2<'static> {
    Argon2::new(ALGORITHM, VERSION, PARAMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "correct horse";

    fn entered_right_and_wrong(stored: &str) -> (bool, bool) {
        (
            Password::entered(PASSWORD).matches(Some(stored)),
            Password::entered("correct horse ").matches(Some(stored)),
        )
    }

    #[test]
    fn only_the_same_password_matches() {
        let stored = Password::new(PASSWORD, PASSWORD, "a@b", None).unwrap().hash([7; SALT_BYTES]);
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$BwcHBwcHBwcHBwcHBwcHBw$"), "{stored}");
        assert!(!stored.contains("horse"));
        assert_eq!(entered_right_and_wrong(&stored), (true, false));
        let password = Password::entered(PASSWORD);
        for damaged in ["", "$argon2id$damaged", "$argon2id$v=19$m=19456,t=2,p=1$BwcHBwcHBwcHBwcHBwcHBw"] {
            assert!(!password.matches(Some(damaged)), "{damaged}");
        }
        assert!(!password.matches(None));
    }

    #[test]
    fn a_refused_password_says_why() {
        let new = |text: &str, repeated: &str| {
            Password::new(text, repeated, "someone@example.com", Some("the one before")).unwrap_err()
        };
        assert_eq!(new("short", "short"), InvalidPassword::Length);
        assert_eq!(new(&"x".repeat(201), ""), InvalidPassword::Length);
        assert_eq!(new("Someone@example.com", "Someone@example.com"), InvalidPassword::Email);
        assert_eq!(new("long enough text", "long enouhg text"), InvalidPassword::Mismatch);
        assert_eq!(new("the one before", "the one before"), InvalidPassword::Unchanged);
        for trivial in [
            "1234567890",
            "2026-11-26",
            "qwertyuiop",
            "password123",
            "P@ssw0rd2026!",
            "passwordpassword",
            "Welcome-12345",
            "aaaaaaaaaaaa",
            "abcabcabcabc",
            "abcdefghijkl",
            "Someone2024",
            "someone.example",
            "iloveyou12",
        ] {
            assert_eq!(new(trivial, trivial), InvalidPassword::Guessable, "{trivial}");
        }
        for fine in [
            "a sentence with spaces",
            "another sentence",
            "tr0ub4dor&3",
            "kX9-vQ2pLm7",
            "73958206147392",
            "größe-öfter-übel",
        ] {
            assert!(Password::new(fine, fine, "someone@example.com", None).is_ok(), "{fine}");
        }
    }
}
