//! The schemas of the tools' arguments, which are those of the request bodies in the `OpenAPI` document.
//!
//! Invariant: a client sends the list of tools to its model with every conversation, so it stays small. The options that few
//! requests have are named in it, and described one by one.

use anyhow::{Result, anyhow, ensure};
use platen_shared::{
    openapi,
    request::FieldName::{
        self, Css, Data, DeviceScaleFactor, Format, FullPage, Height, Html, Landscape, Margin, PdfFormat,
        PrintBackground, Selector, TemplateId, Url, Variables, WaitForSelector, WaitForTimeout, Width,
    },
};
use serde_json::{Map, Value, json};

/// The argument that names the file to write.
pub(super) const PATH: &str = "path";
/// The argument that names a file of the markup.
pub(super) const FILE: &str = "file";
/// The arguments of an address: the link, the name of the file, and values by name.
pub(super) const LINK: &str = "link";
pub(super) const FILE_NAME: &str = "fileName";
pub(super) const VALUES: &str = "values";
/// The argument with the options that are not arguments themselves.
pub(super) const OPTIONS: &str = "options";

/// The options that are arguments themselves.
const COMMON: [FieldName; 13] = [
    Format,
    PdfFormat,
    Landscape,
    Margin,
    PrintBackground,
    Width,
    Height,
    DeviceScaleFactor,
    FullPage,
    Selector,
    WaitForSelector,
    WaitForTimeout,
    Css,
];

/// The arguments of the tool that renders: what a page is made from, the common options, the other ones, and the path.
pub(super) fn arguments(has_files: bool, has_templates: bool) -> Map<String, Value> {
    let text = |description: &str| json!({ "type": "string", "minLength": 1, "description": description });
    let all = properties();
    let short = |name: FieldName| {
        let mut field = all[name.as_str()].clone();
        field["description"] = shortened(field["description"].as_str().unwrap_or_default()).into();
        (name.to_string(), field)
    };
    let mut properties = Map::from_iter([Html, Url].map(short));
    if has_files {
        let file = "HTML file below the directory of this server; a relative path is in that directory. The page gets the \
                    other files of its folder by their relative addresses.";
        properties.insert(FILE.to_owned(), text(file));
    }
    if has_templates {
        properties.extend([TemplateId, Variables, Data].map(short));
    }
    let path = "File to write, below the directory of this server; a relative path is in that directory. Missing folders are \
                created, and a file that exists is replaced. It ends in .png, .jpg, .webp or .pdf, which chooses the format \
                if `format` does not. Without it the result has the file itself.";
    properties.insert(PATH.to_owned(), text(path));
    properties.extend(COMMON.map(short));
    let names = FieldName::options().filter(|name| !COMMON.contains(name));
    let names: Vec<&str> = names.map(FieldName::as_str).collect();
    let options = format!("Further options by name: {}.", names.join(", "));
    properties.insert(OPTIONS.to_owned(), json!({ "type": "object", "description": options }));
    // Some clients refuse a schema with alternatives at its top, so none says that one of the first is required.
    object(properties)
}

/// The schema of an object with these members and no others.
pub(super) fn object(properties: Map<String, Value>) -> Map<String, Value> {
    let members = [
        ("type", "object".into()),
        ("additionalProperties", false.into()),
        ("properties", Value::Object(properties)),
    ];
    members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// The schema of an option with its whole description.
///
/// # Errors
/// If there is none of this name.
pub(super) fn option(name: &str) -> Result<Value> {
    let found = FieldName::options().find(|option| option.as_str() == name);
    found.and_then(|_| properties().shift_remove(name)).ok_or_else(|| {
        let names: Vec<&str> = FieldName::options().map(FieldName::as_str).collect();
        anyhow!("there is no option {name:?}: the options are {}", names.join(", "))
    })
}

/// Moves the members of `options` to the arguments, which are then those of a request.
///
/// # Errors
/// If it is no object, or has what is an argument already.
pub(super) fn flatten(arguments: &mut Map<String, Value>) -> Result<()> {
    match arguments.shift_remove(OPTIONS) {
        None => Ok(()),
        Some(Value::Object(options)) => {
            for (name, value) in options {
                ensure!(arguments.insert(name.clone(), value).is_none(), "\"{name}\" is given twice");
            }
            Ok(())
        }
        Some(_) => Err(anyhow!("\"{OPTIONS}\" must be an object")),
    }
}

/// The schemas of the fields of both endpoints.
fn properties() -> Map<String, Value> {
    let schemas = openapi::request_schemas();
    let mut properties = Map::new();
    for body in ["TemplateRenderRequest", "RenderRequest"] {
        let Value::Object(fields) = schemas[body]["properties"].clone() else { continue };
        properties.extend(fields);
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

/// The arguments with which an address of a link is signed.
pub(super) fn link() -> Value {
    json!({
        LINK: { "type": "string", "description": "Id of the link whose secret this server has." },
        FILE_NAME: { "type": "string", "description": "Name of the file with its extension, such as card.png." },
        VALUES: {
            "type": "object",
            "additionalProperties": { "type": "string" },
            "description": "Values of the template by name.",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_an_argument_or_named() {
        let schema = arguments(true, true);
        let properties = schema["properties"].as_object().unwrap();
        let others = properties[OPTIONS]["description"].as_str().unwrap();
        for name in FieldName::options() {
            let is_named = others.split(&[' ', ',', '.']).any(|word| word == name.as_str());
            assert!(is_named != properties.contains_key(name.as_str()), "{name}");
            let option = option(name.as_str()).unwrap();
            assert!(!option.to_string().contains("$ref"), "{option}");
        }
        for name in [Html, Url, TemplateId, Variables, Data] {
            assert!(properties.contains_key(name.as_str()), "{name}");
        }
        let error = option("widht").unwrap_err().to_string();
        assert!(error.contains("no option \"widht\"") && error.contains(" width,"), "{error}");
        option("html").unwrap_err();
        assert!(option("margin").unwrap()["oneOf"][2]["properties"]["top"]["oneOf"].is_array());
        assert_eq!(
            shortened("Format of the file. `jpg` means `jpeg`. Default: `png`."),
            "Format of the file. Default: `png`."
        );
        assert_eq!(shortened("Device pixels."), "Device pixels.");
    }

    #[test]
    fn options_are_given_once() {
        let flat = |arguments: Value| {
            let Value::Object(mut arguments) = arguments else { unreachable!() };
            flatten(&mut arguments).map(|()| Value::Object(arguments)).map_err(|error| error.to_string())
        };
        assert_eq!(
            flat(json!({ "html": "x", "options": { "scale": 2 } })),
            Ok(json!({ "html": "x", "scale": 2 }))
        );
        let twice = flat(json!({ "width": 1, "options": { "width": 2 } }));
        assert_eq!(twice, Err("\"width\" is given twice".to_owned()));
        assert_eq!(flat(json!({ "options": [] })), Err("\"options\" must be an object".to_owned()));
    }
}
