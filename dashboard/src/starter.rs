//! Templates to start from: those of `examples/`, with their options and the values of their requests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{form::Form, playground::text};

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

    /// The values of its placeholders.
    pub(crate) fn samples(&self) -> BTreeMap<String, String> {
        let request = parsed(self.request);
        let variables = request["variables"].as_object().into_iter().flatten();
        variables.map(|(name, value)| (name.clone(), text::text(value))).collect()
    }

    /// Its options, as the values of controls.
    pub(crate) fn options(&self) -> Form {
        text::form_of(&parsed(self.options))
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).expect("the examples are JSON")
}

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
    starter!("shipping-label", "Shipping label"),
    starter!("email", "E-mail"),
    starter!("arabic-letter", "Arabic letter"),
];

#[cfg(test)]
mod tests {
    use platen_shared::request::{OPTIONS_WITH_PLACEHOLDERS, TemplateOptions};

    use super::*;
    use crate::playground::body::template_options;

    #[test]
    fn every_starter_has_valid_options_and_values() {
        for starter in STARTERS {
            let options = template_options(&starter.options()).unwrap();
            let samples = starter.samples();
            for placeholder in platen_shared::template::placeholders(starter.html)
                .into_iter()
                .chain(OPTIONS_WITH_PLACEHOLDERS.iter().flat_map(|field| options.placeholders(*field)))
            {
                assert!(samples.contains_key(&placeholder), "{}: {placeholder}", starter.id);
            }
            let stored = TemplateOptions::parse(starter.options.as_bytes()).unwrap();
            assert_eq!(options, stored, "{}", starter.id);
            assert_eq!(Starter::find(starter.id), Some(starter));
        }
        assert_eq!(Starter::find("../invoice"), None);
    }
}
