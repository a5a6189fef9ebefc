//! A submitted form (`application/x-www-form-urlencoded`).
//!
//! Invariant: a field that is there twice counts once, by its first value; text that people typed
//! has one kind of line end.

use std::fmt::Display;

/// The fields.
#[derive(Debug, Default, Clone)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a body, or the query of an address.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A field's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A field's text, empty if there is none, with `\n` for every line end: browsers send `\r\n`.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().replace("\r\n", "\n")
    }

    /// The fields whose names begin with `prefix`, by the rest of their names.
    pub fn starting<'f>(&'f self, prefix: &'f str) -> impl Iterator<Item = (&'f str, &'f str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

/// A field as a page shows it again: what was typed, and what is wrong with it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Field {
    /// What was typed.
    pub value: String,
    /// What is wrong; empty if nothing is.
    pub error: String,
}

impl Field {
    /// A field with nothing wrong.
    #[must_use]
    pub fn of(value: impl Into<String>) -> Self {
        Self { value: value.into(), error: String::new() }
    }

    /// A field with something wrong.
    #[must_use]
    pub fn wrong(value: impl Into<String>, error: &(impl Display + ?Sized)) -> Self {
        let mut error = error.to_string();
        // Errors of libraries begin small; pages write sentences.
        if let Some(first) = error.get(..1) {
            error = first.to_uppercase() + &error[1..];
        }
        Self { value: value.into(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_the_first_counts() {
        let form = Form::parse(b"a=1%2B1&a=2&sample.x=%3Cb%3E&sample.y=&t=l%0D%0Am&broken=%ff%zz");
        assert_eq!(form.get("a"), Some("1+1"));
        assert_eq!(form.get("b"), None);
        assert_eq!(form.text("t"), "l\nm");
        assert_eq!(form.starting("sample.").collect::<Vec<_>>(), [("x", "<b>"), ("y", "")]);
        assert_eq!(form.get("broken"), Some("\u{fffd}%zz"));
        assert_eq!(Field::wrong("x", "a thing").error, "A thing");
    }
}
