//! The columns of a template that follow from its name, markup and options.
//!
//! Invariant: `placeholders` holds exactly the names in the markup and the options, because the claim relies on it.
//! [`TemplateRecord::new`] is the only way to make the columns.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    limits,
    name::Name,
    refusal::text_of_template,
    request::{FieldName, OPTIONS_WITH_PLACEHOLDERS, TemplateOptions},
    template::{self, Language},
};

/// A template's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRecord {
    /// The name, from which rendered files take theirs.
    pub name: Name,
    /// The markup in the form of [`template::pack`].
    pub packed_html: Vec<u8>,
    /// What the markup and the options with placeholders are written in.
    pub language: Language,
    /// The options.
    pub options: TemplateOptions,
    /// A JSON object: the placeholder names in the markup (`html`), and in each option that has some. A template in Jinja has
    /// none, because its values are not known by name before it is filled.
    pub placeholders: String,
    /// The names that values may have: of placeholders, or those that a template in Jinja uses.
    pub names: BTreeSet<String>,
}

/// Markup that cannot be a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMarkup {
    /// It has no bytes, or too many.
    #[error("a template is not empty and has at most {} bytes", limits::MAX_HTML_BYTES)]
    Size,
    /// No request could fill it.
    #[error("a template has at most {} placeholders, as a request has variables", limits::MAX_VARIABLES)]
    Placeholders,
    /// It is no valid template in Jinja. The field is that of an option, if the error is not in the markup.
    #[error("{} line {}: {}", text_of_template(.field.map(FieldName::as_str)), .line, .message)]
    Syntax {
        /// The option.
        field: Option<FieldName>,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

impl TemplateRecord {
    /// Makes the columns of a template with placeholders from a name, markup and options.
    ///
    /// # Errors
    /// When the markup is empty or has more than [`limits::MAX_HTML_BYTES`] bytes, or when it and the options have more than
    /// [`limits::MAX_VARIABLES`] placeholders.
    pub fn new(name: Name, html: &str, options: TemplateOptions) -> Result<Self, BadMarkup> {
        let record =
            Self { language: Language::Placeholders, ..Self::without_placeholders(name, html, options)? };
        let options = &record.options;
        let of_options = OPTIONS_WITH_PLACEHOLDERS.map(|field| (field, options.placeholders(field)));
        let placeholders: BTreeMap<&str, Vec<String>> = [(FieldName::Html, template::placeholders(html))]
            .into_iter()
            .chain(of_options)
            .filter(|(_, names)| !names.is_empty())
            .map(|(field, names)| (field.as_str(), names))
            .collect();
        let names: BTreeSet<String> = placeholders.values().flatten().cloned().collect();
        if names.len() > limits::MAX_VARIABLES {
            return Err(BadMarkup::Placeholders);
        }
        Ok(Self { placeholders: serde_json::json!(placeholders).to_string(), names, ..record })
    }

    /// Makes the columns of a template in Jinja. `check` returns the names of the values that a text
    /// uses, or its first error: the line and what is wrong.
    ///
    /// # Errors
    /// When the markup is empty or has more than [`limits::MAX_HTML_BYTES`] bytes, or when it or an option is not valid.
    pub fn jinja(
        name: Name,
        html: &str,
        options: TemplateOptions,
        check: impl Fn(&str) -> Result<BTreeSet<String>, (usize, String)>,
    ) -> Result<Self, BadMarkup> {
        let mut record = Self::without_placeholders(name, html, options)?;
        let of_options = OPTIONS_WITH_PLACEHOLDERS
            .into_iter()
            .filter_map(|field| Some((Some(field), Cow::Owned(record.options.text(field)?))));
        let mut names = BTreeSet::new();
        for (field, text) in [(None, Cow::Borrowed(html))].into_iter().chain(of_options) {
            names.extend(check(&text).map_err(|(line, message)| BadMarkup::Syntax {
                field,
                line,
                message,
            })?);
        }
        record.names = names;
        Ok(record)
    }

    fn without_placeholders(name: Name, html: &str, options: TemplateOptions) -> Result<Self, BadMarkup> {
        if html.is_empty() || html.len() > limits::MAX_HTML_BYTES {
            return Err(BadMarkup::Size);
        }
        let packed_html = template::pack(html);
        let (language, placeholders, names) = (Language::Jinja, "{}".to_owned(), BTreeSet::new());
        Ok(Self { name, packed_html, language, options, placeholders, names })
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
        assert_eq!(record.names, ["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(template::unpack(&record.packed_html).unwrap(), "{{ b }}{{ a }}");
        for bad in [String::new(), "x".repeat(limits::MAX_HTML_BYTES + 1)] {
            assert_eq!(
                TemplateRecord::new(name.clone(), &bad, TemplateOptions::default()),
                Err(BadMarkup::Size)
            );
        }
    }

    #[test]
    fn a_template_in_jinja_is_checked_with_its_options() {
        let check = |text: &str| {
            if text.contains("{{ end") {
                Err((2, "unexpected end".to_owned()))
            } else {
                Ok(template::placeholders(text).into_iter().collect())
            }
        };
        let name = || Name::parse("n").unwrap();
        let options = |footer: &str| {
            let json = serde_json::json!({ "format": "pdf", "footerHtml": footer }).to_string();
            TemplateOptions::parse(json.as_bytes()).unwrap()
        };
        let record = TemplateRecord::jinja(name(), "{{ b.c }}{{ a }}", options("{{ x }}"), check).unwrap();
        assert_eq!((record.language, record.placeholders.as_str()), (Language::Jinja, "{}"));
        assert_eq!(record.names, ["a", "b.c", "x"].map(str::to_owned).into());
        for (html, footer, message) in [
            ("{{ end", "", "Template line 2: unexpected end"),
            ("x", "{{ end", "\"footerHtml\" of the template, line 2: unexpected end"),
        ] {
            let error = TemplateRecord::jinja(name(), html, options(footer), check).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let empty = TemplateRecord::jinja(name(), "", options(""), check);
        assert_eq!(empty, Err(BadMarkup::Size));
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
