//! The columns of a template that follow from its name and markup.
//!
//! Invariant: `placeholders` holds exactly the names in the markup, because the claim relies on it.
//! [`TemplateRecord::new`] is the only way to make the columns.

use crate::{limits, name::Name, template};

/// A template's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRecord {
    /// The name, from which rendered files take theirs.
    pub name: Name,
    /// The markup in the form of [`template::pack`].
    pub packed_html: Vec<u8>,
    /// A JSON array of the placeholder names in the markup.
    pub placeholders: String,
}

/// Markup that cannot be a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a template is not empty and has at most {} bytes", limits::MAX_HTML_BYTES)]
pub struct BadMarkup;

impl TemplateRecord {
    /// Makes the columns from a name and markup.
    ///
    /// # Errors
    /// When the markup is empty or has more than [`limits::MAX_HTML_BYTES`] bytes.
    pub fn new(name: Name, html: &str) -> Result<Self, BadMarkup> {
        if html.is_empty() || html.len() > limits::MAX_HTML_BYTES {
            return Err(BadMarkup);
        }
        let placeholders = serde_json::Value::from(template::placeholders(html)).to_string();
        Ok(Self { name, packed_html: template::pack(html), placeholders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_match_the_markup() {
        let name = Name::parse("n").unwrap();
        let record = TemplateRecord::new(name.clone(), "{{ b }}{{ a }}").unwrap();
        assert_eq!(record.placeholders, r#"["a","b"]"#);
        assert_eq!(template::unpack(&record.packed_html).unwrap(), "{{ b }}{{ a }}");
        for bad in [String::new(), "x".repeat(limits::MAX_HTML_BYTES + 1)] {
            assert_eq!(TemplateRecord::new(name.clone(), &bad), Err(BadMarkup));
        }
    }
}
