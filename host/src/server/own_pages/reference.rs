//! The reference of the API: the OpenAPI document as a document in Markdown.

use std::fmt::Write as _;

use platen_shared::openapi;
use serde_json::{Map, Value};

/// The types that fields have in common.
const TYPES: &[&str] = &["Length", "Margins", "Clip", "Metadata", "Attachment", "Protection", "Error"];

/// The document. Its headings are the operations, and what they have in common.
pub(super) fn markdown() -> String {
    let document: Value = serde_json::from_str(openapi::DOCUMENT).expect("the document is JSON");
    let components = &document["components"];
    let schemas = &components["schemas"];
    let mut text = format!(
        "# Reference\n\nGenerated from the [OpenAPI document](../shared/openapi.json) of this server. To try a request, use the \
         playground of the [dashboard](dashboard.md).\n\n{}\n",
        string(&document["info"]["description"])
    );
    let bodies = [
        ("/v1/render", &schemas["RenderRequest"]["properties"]),
        ("/v1/render/template", &schemas["TemplateRenderRequest"]["properties"]),
    ];
    let is_shared = |name: &str| bodies.iter().all(|(_, fields)| fields.get(name).is_some());
    for (path, fields) in bodies {
        let operation = &document["paths"][path]["post"];
        let _ = write!(
            text,
            "\n## POST {path}\n\n{} {}\n\nIts fields are these, and those [of both operations](#fields-of-both-operations):\n\n",
            string(&operation["summary"]),
            string(&operation["description"])
        );
        text.push_str(&table(fields, |name| !is_shared(name)));
        text.push_str("\nExamples:\n\n");
        for example in entries(&operation["requestBody"]["content"]["application/json"]["examples"]) {
            let _ = write!(text, "```json\n{:#}\n```\n\n", example.1["value"]);
        }
    }
    let link = &document["paths"]["/v1/links/{linkId}/{signature}/{file}"]["get"];
    let _ = write!(
        text,
        "\n## GET /v1/links\n\n{} {} It is described [here](api.md#links).\n",
        string(&link["summary"]),
        string(&link["description"])
    );
    text.push_str("\n## Fields of both operations\n\n");
    text.push_str(&table(bodies[0].1, is_shared));
    text.push_str("\n## Responses\n\nThe codes of errors are listed [here](api.md#errors).\n\n| status | meaning | headers |\n| --- | --- | --- |\n");
    // The template operation has all responses of the other.
    for (status, response) in entries(&document["paths"]["/v1/render/template"]["post"]["responses"]) {
        let response = &components["responses"][referred(response)];
        let headers = entries(&response["headers"]).map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>();
        let meaning = cell(&response["description"]);
        let _ = writeln!(text, "| {status} | {meaning} | {} |", headers.join(", "));
    }
    text.push_str("\n## Headers of responses\n\n| name | meaning |\n| --- | --- |\n");
    let mut headers = Map::new();
    for (_, response) in entries(&components["responses"]) {
        headers.extend(entries(&response["headers"]).map(|(name, header)| (name.clone(), header.clone())));
    }
    for (name, header) in &headers {
        let meaning = cell(&components["headers"][referred(header)]["description"]);
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    for name in TYPES {
        let schema = &schemas[name];
        let description = string(&schema["description"]);
        let _ = write!(text, "\n## {name}\n\n{description}\n\n");
        if schema.get("properties").is_some() {
            text.push_str(&table(&schema["properties"], |_| true));
        }
    }
    text
}

/// A table of the fields whose names are chosen.
fn table(fields: &Value, is_chosen: impl Fn(&str) -> bool) -> String {
    let mut text = "| field | value | meaning |\n| --- | --- | --- |\n".to_owned();
    for (name, schema) in entries(fields).filter(|(name, _)| is_chosen(name)) {
        let _ = writeln!(text, "| `{name}` | {} | {} |", value(schema), cell(&schema["description"]));
    }
    text
}

/// The values of a schema, in words.
fn value(schema: &Value) -> String {
    let list = |name: &str| schema[name].as_array().into_iter().flatten();
    let number = |name: &str| schema[name].as_number().map(ToString::to_string);
    if schema.get("$ref").is_some() {
        let name = referred(schema);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for alternatives in ["oneOf", "allOf"] {
        if schema.get(alternatives).is_some() {
            return list(alternatives).map(value).collect::<Vec<_>>().join(" or ");
        }
    }
    if schema.get("enum").is_some() {
        return list("enum").map(|name| format!("`{}`", string(name))).collect::<Vec<_>>().join(", ");
    }
    let kind = match string(&schema["type"]) {
        "integer" => "whole number",
        kind => kind,
    };
    let limits = match (number("minimum"), number("maximum"), number("maxLength")) {
        (Some(min), Some(max), _) => format!(", {min} to {max}"),
        (Some(min), None, _) => format!(", at least {min}"),
        (.., Some(max)) => format!(", at most {max} characters"),
        _ => String::new(),
    };
    format!("{kind}{limits}")
}

/// The name of the component to which an object refers.
fn referred(object: &Value) -> &str {
    string(&object["$ref"]).rsplit('/').next().unwrap_or_default()
}

fn cell(text: &Value) -> String {
    string(text).replace('|', "\\|").replace('\n', " ")
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_response_and_header_is_listed() {
        let text = markdown();
        let document: Value = serde_json::from_str(openapi::DOCUMENT).unwrap();
        let (fields, _) = text.split_once("## Responses").unwrap();
        for body in ["RenderRequest", "TemplateRenderRequest"] {
            for (name, _) in entries(&document["components"]["schemas"][body]["properties"]) {
                assert_eq!(fields.matches(&format!("\n| `{name}` |")).count(), 1, "{name}");
            }
        }
        for line in [
            "\n| `margin` | number, at least 0 or string or [Margins](#margins) | Margins of the paper",
            "\n| `fileName` | string, at most 160 characters | Name of",
            "\n| `format` | `png`, `jpeg`, ",
            "\n| 404 | The account has no such template. | `x-request-id`, `cache-control`, ",
            "\n| `x-page-idle` | `false` if",
            "\n| `top` | [Length](#length) |",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
