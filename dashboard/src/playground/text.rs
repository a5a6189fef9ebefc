//! The texts of controls, from a request or the options of a template.

use std::collections::BTreeMap;

use platen_shared::request::{FieldName, TemplateOptions};
use serde_json::{Value, json};

use crate::form::Form;

/// The form of a request body that is an object: the values of the controls.
pub(crate) fn form_of(body: &Value) -> Form {
    let mut values = Vec::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        match value {
            Value::Object(object)
                if [FieldName::Variables.as_str(), FieldName::Data.as_str()].contains(&name.as_str()) =>
            {
                let json = serde_json::to_string_pretty(object).unwrap_or_default();
                values.push((name.clone(), json));
            }
            Value::Array(standards) if name == FieldName::PdfStandard.as_str() => {
                values.push((name.clone(), standards.iter().map(text).collect::<Vec<_>>().join(", ")));
            }
            Value::String(html)
                if html.is_empty()
                    && [FieldName::HeaderFirstHtml.as_str(), FieldName::FooterFirstHtml.as_str()]
                        .contains(&name.as_str()) =>
            {
                values.push((name.clone(), " ".to_owned()));
            }
            Value::Object(members) => {
                values
                    .extend(members.iter().map(|(member, value)| (format!("{name}.{member}"), text(value))));
            }
            value => values.push((name.clone(), text(value))),
        }
    }
    Form::of(values)
}

/// The options of a template as the values of controls.
pub(crate) fn form_of_options(options: &TemplateOptions) -> Form {
    serde_json::from_str(options.as_json()).map_or_else(|_| Form::default(), |options| form_of(&options))
}

/// A JSON object of the texts of controls, by name.
pub(crate) fn texts_of_options(options: &TemplateOptions) -> Value {
    json!(form_of_options(options).fields().collect::<BTreeMap<_, _>>())
}

/// The text of a control for a value: a string without its quotation marks, anything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Source, body::Request},
        *,
    };

    #[test]
    fn the_form_of_a_body_gives_the_same_request() {
        let body = r#"{"templateId":"t","format":"pdf","scale":0.5,"landscape":true,"margin":{"top":"1cm","left":20},"variables":{"a":"b"},"data":{"rows":[{"c":1}]},
            "metadata":{"title":"7","date":"2026-11-27T06:34:51Z"},"headerFirstHtml":"","pdfStandard":["pdf/a-2b","pdf/ua-1"]}"#;
        let mut form = form_of(&serde_json::from_str(body).unwrap());
        form.set(Source::FIELD, "template");
        let request = Request::of(&form).unwrap().body;
        let same =
            |json: &str| serde_json::from_str::<std::collections::BTreeMap<String, Value>>(json).unwrap();
        assert_eq!(same(&request), same(body));
    }
}
