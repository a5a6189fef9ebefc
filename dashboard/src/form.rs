//! A submitted form (`application/x-www-form-urlencoded`), and form fields as pages show them.
//!
//! Invariant: of a repeated field only the first value is used.

use std::fmt::Display;

/// The fields of a form, decoded.
#[derive(Debug, Default, Clone)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses a request body or a query string.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A form of these names and values.
    pub(crate) fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    /// Gives a field a value in place of the one that it has.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value.into()));
    }

    /// A form of the fields whose names begin with `prefix`, named by what follows it.
    pub(crate) fn without_prefix(&self, prefix: &str) -> Self {
        Self(self.with_prefix(prefix).map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The names and values, in the order of the form.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a field as sent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a field with `\n` line endings (browsers send `\r\n`); empty if the field is missing.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().replace("\r\n", "\n")
    }

    /// The fields whose names begin with `prefix`, without the prefix.
    pub(crate) fn with_prefix<'f>(&'f self, prefix: &'f str) -> impl Iterator<Item = (&'f str, &'f str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

/// A form field as a page shows it: its value, and its error.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// The submitted or stored value.
    pub(crate) value: String,
    /// The error text; empty if the value is valid.
    pub(crate) error: String,
}

impl Field {
    pub(crate) fn valid(value: impl Into<String>) -> Self {
        Self { value: value.into(), error: String::new() }
    }

    pub(crate) fn invalid(value: impl Into<String>, error: &(impl Display + ?Sized)) -> Self {
        let mut error = error.to_string();
        // `Display` texts of errors have no capital letter and no full stop; pages show sentences.
        if let Some(first) = error.get(..1) {
            let full_stop = if error.ends_with('.') { "" } else { "." };
            error = first.to_uppercase() + &error[1..] + full_stop;
        }
        Self { value: value.into(), error }
    }

    /// A field whose value was parsed, with the error if there was one.
    pub(crate) fn parsed<T>(value: &str, parsed: Result<T, impl Display>) -> Self {
        parsed.map_or_else(|error| Self::invalid(value, &error), |_| Self::valid(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_the_first_value_is_used() {
        let form = Form::parse(b"a=1%2B1&a=2&sample.x=%3Cb%3E&sample.y=&t=l%0D%0Am&broken=%ff%zz");
        assert_eq!(form.get("a"), Some("1+1"));
        assert_eq!(form.get("b"), None);
        assert_eq!(form.text("t"), "l\nm");
        assert_eq!(form.with_prefix("sample.").collect::<Vec<_>>(), [("x", "<b>"), ("y", "")]);
        assert_eq!(form.get("broken"), Some("\u{fffd}%zz"));
        assert_eq!(Field::invalid("x", "a thing").error, "A thing.");
    }
}
