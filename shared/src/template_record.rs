//! A template as it is stored: its columns, and the statements that save it.
//!
//! Invariant: `placeholders` always names just what the markup uses, since the claim relies on it;
//! so the columns are only made together, here, by whoever saves. The database keeps the earlier
//! version of what a statement replaces.

use crate::{limits, name::Name, template};

/// Inserts a template: id, account, then the columns of [`TemplateRecord`], then the time. Samples too.
pub const INSERT: &str = "INSERT INTO templates \
    (account_id, id, name, packed_html, placeholders, created_at, updated_at, samples) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, coalesce(?7, '{}')) RETURNING id";

/// Replaces a template of an account; its samples stay if they are not given.
pub const UPDATE: &str = "UPDATE templates SET name = ?3, packed_html = ?4, placeholders = ?5, \
    updated_at = ?6, samples = coalesce(?7, samples) WHERE account_id = ?1 AND id = ?2 RETURNING id";

/// A template's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRecord {
    /// Its name.
    pub name: Name,
    /// Its markup, packed.
    pub packed_html: Vec<u8>,
    /// A JSON array of the names its markup uses.
    pub placeholders: String,
}

/// Markup that cannot be a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a template is not empty and has at most {} bytes", limits::MAX_HTML_BYTES)]
pub struct BadMarkup;

impl TemplateRecord {
    /// Makes the columns.
    ///
    /// # Errors
    /// [`BadMarkup`]
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
    fn the_columns_belong_together() {
        let name = Name::parse("n").unwrap();
        let saved = TemplateRecord::new(name.clone(), "{{ b }}{{ a }}").unwrap();
        assert_eq!(saved.placeholders, r#"["a","b"]"#);
        assert_eq!(template::unpack(&saved.packed_html).unwrap(), "{{ b }}{{ a }}");
        for bad in [String::new(), "x".repeat(limits::MAX_HTML_BYTES + 1)] {
            assert_eq!(TemplateRecord::new(name.clone(), &bad), Err(BadMarkup));
        }
    }
}
