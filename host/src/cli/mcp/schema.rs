//! The schemas of the tools' arguments, which are those of the request bodies in the `OpenAPI` document.

use platen_shared::{endpoint::Endpoint, openapi, request::FieldName};
use serde_json::{Map, Value, json};

/// The argument that names the file to write.
pub(super) const PATH: &str = "path";

/// The arguments of a tool that renders what `source` names: the fields of the request with the first sentence of their
/// descriptions, and the path.
pub(super) fn arguments(endpoint: Endpoint, source: FieldName) -> Map<String, Value> {
    let mut properties = properties(endpoint, source);
    for (name, field) in &mut properties {
        if name != source.as_str() {
            field["description"] = shortened(field["description"].as_str().unwrap_or_default()).into();
        }
    }
    let path = "File to write, below the directory of this server; a relative path is in that directory. A file that \
                exists is replaced. It ends in .png, .jpg, .webp or .pdf, which chooses the format if `format` does \
                not. Without it the result has the file itself.";
    properties.insert(PATH.to_owned(), json!({ "type": "string", "minLength": 1, "description": path }));
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": [source.as_str()],
    });
    let Value::Object(schema) = schema else { unreachable!("it is an object") };
    schema
}

/// The argument that names a file of the markup.
pub(super) const FILE: &str = "file";

/// Adds the file that has the markup in place of `html`.
pub(super) fn add_file(schema: &mut Map<String, Value>) {
    let file = "HTML file below the directory of this server, in place of `html`; a relative path is in that directory. The \
                page gets the other files of its folder by their relative addresses.";
    schema["properties"][FILE] = json!({ "type": "string", "minLength": 1, "description": file });
    // Some clients refuse a schema with alternatives at its top.
    schema.shift_remove("required");
}

/// The schemas of all options, with their whole descriptions.
pub(super) fn options() -> Map<String, Value> {
    let options = properties(Endpoint::Render, FieldName::Html);
    options.into_iter().filter(|(name, _)| name != FieldName::Html.as_str()).collect()
}

/// The schemas of the fields of an endpoint, without a source other than this one and without the name of a download.
fn properties(endpoint: Endpoint, source: FieldName) -> Map<String, Value> {
    let schemas = openapi::request_schemas();
    let name = match endpoint {
        Endpoint::Render => "RenderRequest",
        Endpoint::Template => "TemplateRenderRequest",
    };
    let Value::Object(mut properties) = schemas[name]["properties"].clone() else { return Map::new() };
    for field in [FieldName::Html, FieldName::Url, FieldName::FileName] {
        if field != source {
            properties.shift_remove(field.as_str());
        }
    }
    properties.values_mut().for_each(|field| inline(field, &schemas));
    properties
}

/// Replaces references by the schemas to which they refer.
fn inline(value: &mut Value, schemas: &Map<String, Value>) {
    if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        *value = schemas[name].clone();
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| inline(member, schemas)),
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, schemas)),
        _ => {}
    }
}

/// The first sentence of a description, and its default.
fn shortened(description: &str) -> String {
    let (text, default) = match description.rfind(" Default: ") {
        Some(at) => description.split_at(at),
        None => (description, ""),
    };
    let first = text.split_once(". ").map_or(text, |(first, _)| first);
    format!("{}.{default}", first.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_the_fields_of_the_request_and_the_path() {
        for (endpoint, source) in [
            (Endpoint::Render, FieldName::Html),
            (Endpoint::Render, FieldName::Url),
            (Endpoint::Template, FieldName::TemplateId),
        ] {
            let mut schema = arguments(endpoint, source);
            let names: Vec<_> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let others = [FieldName::Html, FieldName::Url, FieldName::FileName];
            let fields =
                FieldName::of_endpoint(endpoint).filter(|name| *name == source || !others.contains(name));
            let expected: Vec<_> = fields.map(FieldName::as_str).chain([PATH]).collect();
            assert_eq!(names, expected);
            add_file(&mut schema);
            let text = Value::Object(schema).to_string();
            assert!(!text.contains("$ref"), "{text}");
            assert!(text.len() < 13_000, "{}", text.len());
        }
        assert_eq!(options().len(), FieldName::options().count());
        let margin = &options()["margin"]["oneOf"][2]["properties"]["top"];
        assert!(margin["oneOf"].is_array(), "{margin}");
        assert_eq!(
            shortened("Format of the file. `jpg` means `jpeg`. Default: `png`."),
            "Format of the file. Default: `png`."
        );
        assert_eq!(shortened("Device pixels."), "Device pixels.");
    }
}
