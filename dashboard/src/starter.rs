//! Templates to start from: those of `examples/`, with the values and options of their requests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{form::Form, playground::control};

/// A template to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Starter {
    /// Its name in addresses.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) html: &'static str,
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
        let request = self.request();
        let variables = request["variables"].as_object().into_iter().flatten();
        variables.map(|(name, value)| (name.clone(), control::text(value))).collect()
    }

    /// The options that it is made for, as the values of controls.
    pub(crate) fn options(&self) -> Form {
        let mut request = self.request();
        if let Some(fields) = request.as_object_mut() {
            fields.retain(|name, _| !["templateId", "variables"].contains(&name.as_str()));
        }
        control::form_of(&request)
    }

    fn request(&self) -> Value {
        serde_json::from_str(self.request).expect("the examples are JSON")
    }
}

macro_rules! starter {
    ($id:literal, $name:literal) => {
        Starter {
            id: $id,
            name: $name,
            html: include_str!(concat!("../../examples/", $id, ".html")),
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
    use super::*;
    use crate::playground::{Source, body::Request};

    #[test]
    fn every_starter_has_its_values_and_a_valid_request() {
        for starter in STARTERS {
            let samples = starter.samples();
            for placeholder in platen_shared::template::placeholders(starter.html) {
                assert!(samples.contains_key(&placeholder), "{}: {placeholder}", starter.id);
            }
            let mut form = starter.options();
            form.set(Source::FIELD, Source::Template.name());
            form.set("templateId", "tpl_x");
            assert!(Request::of(&form).is_ok(), "{}: {:?}", starter.id, Request::of(&form));
            assert_eq!(Starter::find(starter.id), Some(starter));
        }
        assert_eq!(Starter::find("../invoice"), None);
    }
}
