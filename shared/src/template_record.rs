//! The columns of a template that follow from its name, markup and options.
//!
//! Invariant: `placeholders` holds exactly the names in the markup and the options, because the claim relies on it.
//! [`TemplateRecord::new`] is the only way to make the columns.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    limits,
    name::Name,
    request::{FieldName, OPTIONS_WITH_PLACEHOLDERS, TemplateOptions},
    template,
};

/// A template's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRecord {
    /// The name, from which rendered files take theirs.
    pub name: Name,
    /// The markup in the form of [`template::pack`].
    pub packed_html: Vec<u8>,
    /// The options.
    pub options: TemplateOptions,
    /// A JSON object: the placeholder names in the markup (`html`), and in each option that has some.
    pub placeholders: String,
}

/// Markup that cannot be a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMarkup {
    /// It has no bytes, or too many.
    #[error("a template is not empty and has at most {} bytes", limits::MAX_HTML_BYTES)]
    Size,
    /// No request could fill it.
    #[error("a template has at most {} placeholders, as a request has variables", limits::MAX_VARIABLES)]
    Placeholders,
}

impl TemplateRecord {
    /// Makes the columns from a name, markup and options.
    ///
    /// # Errors
    /// When the markup is empty or has more than [`limits::MAX_HTML_BYTES`] bytes, or when it and the options have more than
    /// [`limits::MAX_VARIABLES`] placeholders.
    pub fn new(name: Name, html: &str, options: TemplateOptions) -> Result<Self, BadMarkup> {
        if html.is_empty() || html.len() > limits::MAX_HTML_BYTES {
            return Err(BadMarkup::Size);
        }
        let of_options = OPTIONS_WITH_PLACEHOLDERS.map(|field| (field, options.placeholders(field)));
        let placeholders: BTreeMap<&str, Vec<String>> = [(FieldName::Html, template::placeholders(html))]
            .into_iter()
            .chain(of_options)
            .filter(|(_, names)| !names.is_empty())
            .map(|(field, names)| (field.as_str(), names))
            .collect();
        if placeholders.values().flatten().collect::<BTreeSet<_>>().len() > limits::MAX_VARIABLES {
            return Err(BadMarkup::Placeholders);
        }
        let placeholders = serde_json::json!(placeholders).to_string();
        Ok(Self { name, packed_html: template::pack(html), options, placeholders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_match_the_markup() {
        let name = Name::parse("n").unwrap();
        let options = TemplateOptions::parse(br#"{"format":"pdf","headerHtml":"{{ c }}{{ a }}"}"#).unwrap();
        let record = TemplateRecord::new(name.clone(), "{{ b }}{{ a }}", options).unwrap();
        assert_eq!(record.placeholders, r#"{"headerHtml":["c","a"],"html":["b","a"]}"#);
        assert_eq!(template::unpack(&record.packed_html).unwrap(), "{{ b }}{{ a }}");
        for bad in [String::new(), "x".repeat(limits::MAX_HTML_BYTES + 1)] {
            assert_eq!(
                TemplateRecord::new(name.clone(), &bad, TemplateOptions::default()),
                Err(BadMarkup::Size)
            );
        }
    }

    #[test]
    fn a_template_has_no_more_placeholders_than_a_request_has_variables() {
        let name = Name::parse("n").unwrap();
        let options =
            || TemplateOptions::parse(br#"{"format":"pdf","headerHtml":"{{ p0 }}{{ p1 }}"}"#).unwrap();
        let markup = |count| -> String {
            (1..=count)
                .flat_map(|number| [format!("{{{{p{number}}}}}"), format!("{{{{ p{number} }}}}")])
                .collect()
        };
        assert!(TemplateRecord::new(name.clone(), &markup(limits::MAX_VARIABLES - 1), options()).is_ok());
        let many = TemplateRecord::new(name, &markup(limits::MAX_VARIABLES), options());
        assert_eq!(many, Err(BadMarkup::Placeholders));
    }
}
