//! Templates to start from: those of `examples/`, with their options and the values of their requests.

use std::collections::BTreeMap;

use platen_shared::template::Language;
use serde_json::{Value, value::RawValue};

use crate::{assets, form::Form, playground::text};

/// A template to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Starter {
    /// Its name in addresses.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) html: &'static str,
    /// Its options, as a JSON object.
    options: &'static str,
    /// A request that renders it.
    request: &'static str,
}

impl Starter {
    /// The query parameter with the id.
    pub(crate) const FIELD: &str = "starter";

    pub(crate) fn find(id: &str) -> Option<&'static Self> {
        STARTERS.iter().find(|starter| starter.id == id)
    }

    /// The address of its picture.
    pub(crate) fn picture(&self) -> String {
        assets::url(&format!("starter-{}", self.id), "webp")
    }

    /// What it is written in: Jinja if its request has `data`.
    pub(crate) fn language(&self) -> Language {
        if self.field("data").is_some() { Language::Jinja } else { Language::Placeholders }
    }

    /// The values of its placeholders.
    pub(crate) fn samples(&self) -> BTreeMap<String, String> {
        let Some(json) = self.field("variables") else { return BTreeMap::new() };
        let values: BTreeMap<String, Value> = serde_json::from_str(json.get()).expect(IS_JSON);
        values.into_iter().map(|(name, value)| (name, text::text(&value))).collect()
    }

    /// The values of one in Jinja, as a JSON object with the lines of the example.
    pub(crate) fn sample_data(&self) -> String {
        self.field("data").map_or_else(|| "{}".to_owned(), |json| json.get().replace("\n  ", "\n"))
    }

    /// A field of its request.
    fn field(&self, name: &str) -> Option<Box<RawValue>> {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(self.request).expect(IS_JSON);
        fields.into_iter().find_map(|(field, json)| (field == name).then_some(json))
    }

    /// Its options, as the values of controls.
    pub(crate) fn options(&self) -> Form {
        text::form_of(&serde_json::from_str(self.options).expect(IS_JSON))
    }
}

const IS_JSON: &str = "the examples are JSON";

macro_rules! starter {
    ($id:literal, $name:literal) => {
        Starter {
            id: $id,
            name: $name,
            html: include_str!(concat!("../../examples/", $id, ".html")),
            options: include_str!(concat!("../../examples/", $id, ".options.json")),
            request: include_str!(concat!("../../examples/", $id, ".json")),
        }
    };
}

/// All of them, in the order in which pages show them.
pub(crate) const STARTERS: &[Starter] = &[
    starter!("numbered-invoice", "Invoice"),
    starter!("social-card", "Social card"),
    starter!("certificate", "Certificate"),
    starter!("report", "Report"),
    starter!("packing-list", "Packing list"),
    starter!("shipping-label", "Shipping label"),
    starter!("email", "E-mail"),
    starter!("arabic-letter", "Arabic letter"),
];

#[cfg(test)]
mod tests {
    use platen_jinja::Filler;
    use platen_shared::{
        limits::MAX_HTML_BYTES,
        request::{OPTIONS_WITH_PLACEHOLDERS, TemplateOptions},
    };

    use super::*;
    use crate::playground::body::template_options;

    #[test]
    fn every_starter_has_valid_options_and_values() {
        for starter in STARTERS {
            let options = template_options(&starter.options()).unwrap();
            let header = |field| options.text(field).unwrap_or_default();
            let texts = [starter.html.to_owned()].into_iter().chain(OPTIONS_WITH_PLACEHOLDERS.map(header));
            let samples = starter.samples();
            match starter.language() {
                Language::Placeholders => {
                    for placeholder in texts.flat_map(|text| platen_shared::template::placeholders(&text)) {
                        assert!(samples.contains_key(&placeholder), "{}: {placeholder}", starter.id);
                    }
                }
                Language::Jinja => {
                    assert!(samples.is_empty(), "{}", starter.id);
                    let mut filler = Filler::new(&starter.sample_data(), &BTreeMap::new(), "UTC");
                    for text in texts {
                        let result = filler.fill(&text, MAX_HTML_BYTES);
                        assert!(result.is_ok(), "{}: {result:?}", starter.id);
                    }
                }
            }
            let stored = TemplateOptions::parse(starter.options.as_bytes()).unwrap();
            assert_eq!(options, stored, "{}", starter.id);
            assert_eq!(Starter::find(starter.id), Some(starter));
            assert!(assets::find(starter.picture().trim_start_matches("/dashboard/assets/")).is_some());
        }
        assert_eq!(Starter::find("../invoice"), None);
    }
}
