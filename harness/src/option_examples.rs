//! `docs/options.md`: every field of a request with an example, and the pictures of what it does.

use std::fmt::Write as _;

use platen_shared::request::FieldName;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api_reference;

/// A request that shows what a field does: a line of `fixtures/options.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct Example {
    pub field: String,
    body: Box<RawValue>,
    /// The fields to leave out for the picture without the option; empty for no such picture. `None` if no picture shows
    /// what the field does.
    pub without: Option<Vec<String>>,
}

impl Example {
    pub fn body(&self) -> &str {
        self.body.get()
    }
}

/// The examples of fields.
pub fn examples() -> Vec<Example> {
    let lines = include_str!("../../tests/fixtures/options.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("an example")).collect()
}

pub fn document() -> String {
    let mut text = "# Options\n\n\
        Every field of a request, with an example and its picture. Where there are two pictures, the left one is without the option. \
        [The same as a table](api.md#request), with the rules for lengths. `platen render` has them as options, such as \
        `--full-page`, except `html`, `url`, `templateId` and `fileName`.\n"
        .to_owned();
    let examples = examples();
    for (title, formats) in api_reference::GROUPS {
        let _ = write!(text, "\n## {title}\n");
        for name in FieldName::all().filter(|name| formats.contains(&name.spec().formats)) {
            let spec = name.spec();
            let _ = write!(text, "\n### {name}\n\n{}\n\n{}", spec.description, api_reference::values(spec));
            let Some(example) = examples.iter().find(|it| it.field == name.as_str()) else { continue };
            let _ = write!(text, "\n```json\n{}\n```\n", example.body());
            if example.without.is_some() {
                let _ = write!(text, "\n![{name}](pictures/{name}.png)\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_documented() {
        let examples = examples();
        let has_none = |name: &FieldName| !examples.iter().any(|example| example.field == name.as_str());
        let without = FieldName::all().filter(has_none).map(FieldName::as_str).collect::<Vec<_>>().join(" ");
        assert_eq!(
            without,
            "url templateId variables data fileName waitUntil userAgent failOnHttpStatus invoiceXml baseUrl"
        );
        crate::documents::check("options.md", &document());
    }
}
