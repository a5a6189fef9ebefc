//! The `OpenAPI` document of the API, and the schemas of its request bodies, which are generated from the fields.

use serde_json::{Map, Value, json};
use strum::VariantNames as _;

use crate::{
    endpoint::Endpoint,
    job::{PageProblem, PdfStandard, Permission, Relationship},
    limits,
    request::{FieldKind, FieldName},
};

/// The document.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// Where servers have it.
pub const PATH: &str = "/v1/openapi.json";
/// The address in [`DOCUMENT`], that of a server that was just installed.
const ADDRESS: &str = "http://127.0.0.1:3000";

/// The document of a server: its address is that from which the document was read.
#[must_use]
pub fn served() -> String {
    DOCUMENT.replacen(ADDRESS, "/", 1)
}

/// A length in text, as [`Length`](crate::length::Length) reads it.
const LENGTH_PATTERN: &str = "^(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:px|in|cm|mm|pt)$";
/// The schemas of the request bodies, and of the types that their fields share, by name.
#[must_use]
pub fn request_schemas() -> Map<String, Value> {
    let of = |endpoint, text: &str, required: &[FieldName]| {
        let properties: Map<_, _> =
            FieldName::of_endpoint(endpoint).map(|name| (name.to_string(), property(name))).collect();
        let mut schema = json!({
            "type": "object",
            "additionalProperties": false,
            "description": text,
            "properties": properties,
        });
        if !required.is_empty() {
            schema["required"] = required.iter().map(|name| name.as_str()).collect();
        }
        schema
    };
    let number = |range: &std::ops::RangeInclusive<f64>| json!({ "type": "number", "minimum": plain(*range.start()), "maximum": plain(*range.end()) });
    let side = json!({ "$ref": "#/components/schemas/Length" });
    let (offset, length) = (number(&limits::CLIP_OFFSET_RANGE), number(&limits::CLIP_SIDE_RANGE));
    let render = "The body of `POST /v1/render`. One of `html` and `url` is required.";
    let template = "The body of `POST /v1/render/template`.";
    let schemas = [
        ("RenderRequest".to_owned(), of(Endpoint::Render, render, &[])),
        ("TemplateRenderRequest".to_owned(), of(Endpoint::Template, template, &[FieldName::TemplateId])),
        (
            "Length".to_owned(),
            json!({
                "description": "A number of CSS pixels, or a string with `px`, `in`, `cm`, `mm` or `pt`: `\"12mm\"`.",
                "oneOf": [
                    { "type": "number", "minimum": 0 },
                    { "type": "string", "pattern": LENGTH_PATTERN },
                ],
            }),
        ),
        (
            "Margins".to_owned(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "description": "The margins of the four sides. A side that is left out is 0.",
                "properties": { "top": side, "right": side, "bottom": side, "left": side },
            }),
        ),
        (
            "Clip".to_owned(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "description": "A rectangle in CSS pixels from the top left corner of the page.",
                "properties": { "x": offset, "y": offset, "width": length, "height": length },
                "required": ["x", "y", "width", "height"],
            }),
        ),
    ];
    schemas.into_iter().chain(document_schemas()).collect()
}

/// The schemas of what a PDF has beyond its pages.
fn document_schemas() -> [(String, Value); 4] {
    let short = json!({ "type": "string", "maxLength": limits::MAX_METADATA_CHARS });
    let password = json!({ "type": "string", "maxLength": limits::MAX_PDF_PASSWORD_BYTES });
    [
        (
            "Metadata".to_owned(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "description": "The metadata of a PDF.",
                "properties": {
                    "title": short,
                    "author": short,
                    "subject": short,
                    "keywords": short,
                    "creator": short,
                    "language": { "type": "string", "minLength": 1, "maxLength": 100 },
                    "date": { "type": "string", "format": "date-time" },
                },
            }),
        ),
        (
            "Asset".to_owned(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "description": "A file beside the markup, with either `content` (base64) or `text`.",
                "properties": {
                    "content": { "type": "string", "contentEncoding": "base64" },
                    "text": { "type": "string" },
                    "mimeType": { "type": "string", "pattern": "^[^/]+/[^/]+$" },
                },
            }),
        ),
        (
            "Attachment".to_owned(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "description": "A file inside a PDF. `content` is base64.",
                "properties": {
                    "name": { "type": "string", "minLength": 1, "maxLength": limits::MAX_ATTACHMENT_NAME_CHARS },
                    "content": { "type": "string", "contentEncoding": "base64" },
                    "mimeType": { "type": "string", "pattern": "^[^/]+/[^/]+$" },
                    "description": short,
                    "relationship": { "type": "string", "enum": Relationship::VARIANTS },
                },
                "required": ["name", "content"],
            }),
        ),
        (
            "Protection".to_owned(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "description": "The passwords of a PDF, of which one at least is not empty, and what its readers may do.",
                "properties": {
                    "userPassword": password,
                    "ownerPassword": password,
                    "allow": {
                        "type": "array",
                        "items": { "type": "string", "enum": Permission::VARIANTS },
                    },
                },
            }),
        ),
    ]
}

fn property(name: FieldName) -> Value {
    let spec = name.spec();
    let mut schema = match spec.kind {
        FieldKind::Boolean => json!({ "type": "boolean" }),
        FieldKind::Text { min_chars, max_chars } => {
            let mut schema = json!({ "type": "string" });
            if min_chars > 0 {
                schema["minLength"] = min_chars.into();
            }
            if max_chars < usize::MAX {
                schema["maxLength"] = max_chars.into();
            }
            schema
        }
        FieldKind::Choice(names) => json!({ "type": "string", "enum": names }),
        FieldKind::Number { min, max, whole } => json!({
            "type": if whole { "integer" } else { "number" },
            "minimum": plain(min),
            "maximum": plain(max),
        }),
        FieldKind::Length => json!({ "allOf": [{ "$ref": "#/components/schemas/Length" }] }),
        FieldKind::Margin => json!({
            "oneOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": LENGTH_PATTERN },
                { "$ref": "#/components/schemas/Margins" },
            ],
        }),
        FieldKind::Clip => json!({ "allOf": [{ "$ref": "#/components/schemas/Clip" }] }),
        FieldKind::Metadata => json!({ "allOf": [{ "$ref": "#/components/schemas/Metadata" }] }),
        // Not `uniqueItems`, of which OpenAPI Generator makes a set that its own TypeScript does not compile.
        FieldKind::Standard => json!({
            "oneOf": [
                { "type": "string", "enum": PdfStandard::NAMES },
                {
                    "type": "array",
                    "items": { "type": "string", "enum": PdfStandard::NAMES },
                    "minItems": 2,
                    "maxItems": 2,
                },
            ],
        }),
        FieldKind::Attachments => json!({
            "type": "array",
            "items": { "$ref": "#/components/schemas/Attachment" },
            "maxItems": limits::MAX_ATTACHMENTS,
        }),
        FieldKind::Assets => json!({
            "type": "object",
            "additionalProperties": { "$ref": "#/components/schemas/Asset" },
            "maxProperties": limits::MAX_ASSETS,
        }),
        FieldKind::Protection => json!({ "allOf": [{ "$ref": "#/components/schemas/Protection" }] }),
        FieldKind::Texts { max } => {
            json!({ "type": "array", "items": { "type": "string" }, "maxItems": max })
        }
        FieldKind::Data => json!({ "type": "object", "additionalProperties": true }),
        FieldKind::Variables => json!({
            "type": "object",
            "maxProperties": limits::MAX_VARIABLES,
            "additionalProperties": { "oneOf": [{ "type": "string" }, { "type": "number" }] },
        }),
    };
    match name {
        // The rules for it are in its description: with `html` only its type is checked.
        FieldName::Url => schema = json!({ "type": "string" }),
        FieldName::FailOn => schema["items"]["enum"] = json!(PageProblem::VARIANTS),
        FieldName::TemplateId => schema["examples"] = json!(["tpl_0123456789abcdefghij"]),
        _ => {}
    }
    // Not the keyword `default`: generated clients would send it for every field that is left out, also where the
    // field is refused (`quality` of a PNG), and openapi-typescript makes a field with it a required one.
    let default = spec.default.map(|json| format!(" Default: `{}`.", json.trim_matches('"')));
    schema["description"] = format!("{}{}", spec.description, default.unwrap_or_default()).into();
    schema
}

/// A whole number without a fraction.
fn plain(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "limits are small")]
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_served_document_has_its_own_address() {
        let document: Value = serde_json::from_str(&served()).unwrap();
        assert_eq!(document["servers"][0]["url"], "/");
    }

    #[test]
    fn the_document_has_the_generated_schemas() {
        let mut document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let schemas = request_schemas();
        let found = &document["components"]["schemas"];
        if schemas.iter().all(|(name, schema)| &found[name] == schema) {
            return;
        }
        assert!(
            std::env::var_os("UPDATE_DOCS").is_some(),
            "shared/openapi.json is out of date: run UPDATE_DOCS=1 cargo test -p platen-shared openapi"
        );
        for (name, schema) in schemas {
            document["components"]["schemas"][name] = schema;
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        std::fs::write(path, serde_json::to_string_pretty(&document).unwrap() + "\n").unwrap();
    }
}
