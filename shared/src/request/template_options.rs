//! The options of a template.
//!
//! Invariant: they are valid with their own format. What a request changes is checked when both are merged.

use std::fmt;

use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use super::{field_name::FieldName, invalid::InvalidRequest, object::Object, options::Options};
use crate::{format::OutputFormat, job::RenderOptions, template};

/// The options of a template: a JSON object of fields of a request. They are written with the fields in the order of the
/// contract and without spaces.
#[derive(Clone, PartialEq, Eq)]
pub struct TemplateOptions(String);

impl TemplateOptions {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// The first rule that it breaks, as in a request.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidRequest> {
        let object = Object::read(&FieldName::of_template().collect::<Vec<_>>(), json)?;
        Options::read(&object)?.into_options()?;
        Ok(Self::of(&object))
    }

    /// Those that were written by [`as_json`](Self::as_json); `None` if there are other fields among them.
    #[must_use]
    pub fn stored(json: String) -> Option<Self> {
        let is_known = Object::read(&FieldName::of_template().collect::<Vec<_>>(), json.as_bytes()).is_ok();
        is_known.then_some(Self(json))
    }

    /// Those of a request, which are not checked together. Equal options have the same text.
    pub(super) fn of(object: &Object<'_>) -> Self {
        let field = |name: FieldName| {
            let json = object.value(name)?.get();
            let value =
                serde_json::from_str(json).map_or_else(|_| json.to_owned(), |it: Value| it.to_string());
            Some(format!("\"{name}\":{value}"))
        };
        let fields: Vec<String> = FieldName::options().filter_map(field).collect();
        Self(format!("{{{}}}", fields.join(",")))
    }

    /// The format alone.
    pub(super) fn of_format(format: OutputFormat) -> Self {
        Self(format!("{{\"{}\":\"{}\"}}", FieldName::Format, format.extension()))
    }

    /// The options as a JSON object.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The options in JSON with one field on each line, to be read and compared.
    #[must_use]
    pub fn lines(&self) -> String {
        let object = self.object();
        let field = |name: FieldName| Some(format!("  \"{name}\": {}", object.value(name)?.get()));
        let fields: Vec<String> = FieldName::of_template().filter_map(field).collect();
        if fields.is_empty() { "{}\n".to_owned() } else { format!("{{\n{}\n}}\n", fields.join(",\n")) }
    }

    /// The format of the file; `None` if they name none.
    #[must_use]
    pub fn format(&self) -> Option<OutputFormat> {
        self.object().field(FieldName::Format).choice().ok().flatten()
    }

    /// The text of a field that has one.
    #[must_use]
    pub fn text(&self, field: FieldName) -> Option<String> {
        self.object().field(field).string().ok().flatten()
    }

    /// The names of the placeholders in a field; see [`template::placeholders`].
    #[must_use]
    pub fn placeholders(&self, field: FieldName) -> Vec<String> {
        self.text(field).map(|text| template::placeholders(&text)).unwrap_or_default()
    }

    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = FieldName> + use<> {
        self.object().names().collect::<Vec<_>>().into_iter()
    }

    /// The options of a request with these fields for a template with `template`.
    ///
    /// # Errors
    /// The first rule that they break together.
    pub(super) fn over(&self, template: &Self) -> Result<RenderOptions, InvalidRequest> {
        let (given, of_template) = (self.object(), template.object());
        let format = self.format().or(template.format()).unwrap_or(OutputFormat::DEFAULT);
        let is_added = |field: FieldName| {
            of_template.value(field).is_some()
                && field.spec().formats.include(format)
                && !given.names().any(|name| name.replaces(field))
        };
        let mut merged = given.clone();
        merged.add(&of_template, is_added);
        Options::read(&merged)
            .and_then(Options::into_options)
            .map_err(|error| error.with_options_of(is_added))
    }

    fn object(&self) -> Object<'_> {
        let read = Object::read(&FieldName::options().collect::<Vec<_>>(), self.0.as_bytes());
        read.unwrap_or_default()
    }
}

impl Default for TemplateOptions {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl fmt::Debug for TemplateOptions {
    /// Shows the names of the fields only, because those of a request can have passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields().map(FieldName::as_str)).finish()
    }
}

impl Serialize for TemplateOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(&self.0))
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}
