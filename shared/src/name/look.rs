//! What a name looks like, to find names that users cannot tell apart.

use unicode_normalization::UnicodeNormalization as _;

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

/// Upper case and then lower case makes `ß` equal to `SS`, and both small sigmas equal.
fn one_case(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

/// Without repeated and surrounding white space.
fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
