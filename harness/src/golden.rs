//! Golden cases: requests and their expected results, one a line of `golden/invalid.jsonl`, `golden/valid.jsonl` or
//! `golden/fill.jsonl`.
//! `README.md` describes the format.
//!
//! Invariant: the server gets exactly the bytes of the line.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{client, settings::tests_dir};

/// The placeholder in a body for the id of the fixture template.
const TEMPLATE_ID: &str = "$TEMPLATE_ID";

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    /// Bytes in hexadecimal, two digits each.
    #[serde(deserialize_with = "hexadecimal")]
    Hex(Vec<u8>),
    Repeat {
        repeat: String,
        times: usize,
    },
}

/// A request with its result. The parts of a refusal and of a job are in different files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    pub name: String,
    /// The reason for the case if its name does not say it.
    #[serde(default)]
    pub about: String,
    #[serde(default = "render")]
    pub endpoint: String,
    json: Option<Box<RawValue>>,
    body: Option<Vec<Piece>>,
    /// Whether the schema does as the API does: it accepts a valid case and refuses an invalid one.
    #[serde(default = "yes")]
    pub schema_agrees: bool,
    /// The status of a refusal.
    #[serde(default = "bad_request")]
    pub status: u16,
    /// The exact message of a refusal; empty in a valid case.
    #[serde(default)]
    pub error: String,
    /// The difference from the default job, as a JSON merge patch (RFC 7396) in which `source.html` may be
    /// pieces.
    #[serde(default)]
    job: Value,
    #[serde(default = "default_name")]
    pub file_name: String,
}

/// Every request that is refused.
pub fn invalid() -> Result<Vec<Golden>> {
    load("invalid")
}

/// Every request that becomes a job.
pub fn valid() -> Result<Vec<Golden>> {
    load("valid")
}

/// Every template in Jinja with its request.
pub fn filled() -> Result<Vec<Filled>> {
    let text = fs::read_to_string(tests_dir().join("golden/fill.jsonl"))?;
    let read = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    text.lines().map(read).collect()
}

fn load(kind: &str) -> Result<Vec<Golden>> {
    let file = format!("golden/{kind}.jsonl");
    let text = fs::read_to_string(tests_dir().join(&file))?;
    let read = |(number, line): (usize, &str)| {
        let case = serde_json::from_str::<Golden>(line).map_err(anyhow::Error::from);
        let checked = case.and_then(|case| case.check(kind == "invalid").map(|()| case));
        checked.with_context(|| format!("line {number} of {file}"))
    };
    (1..).zip(text.lines()).map(read).collect()
}

impl Golden {
    fn check(&self, is_refused: bool) -> Result<()> {
        ensure!(self.json.is_some() != self.body.is_some(), "a case has either \"json\" or \"body\"");
        ensure!(
            [client::RENDER, client::TEMPLATE].contains(&&*self.endpoint),
            "{} is no endpoint",
            self.endpoint
        );
        ensure!(self.error.is_empty() != is_refused, "only an invalid case has \"error\"");
        ensure!(self.job.is_null() || !is_refused, "only a valid case has \"job\"");
        Ok(())
    }

    pub fn needs_template(&self) -> bool {
        self.json.as_ref().is_some_and(|json| json.get().contains(TEMPLATE_ID))
    }

    pub fn bytes(&self, template_id: &str) -> Bytes {
        match &self.json {
            Some(json) => json.get().replace(TEMPLATE_ID, template_id).into(),
            None => self.body.iter().flatten().flat_map(Piece::bytes).collect::<Vec<u8>>().into(),
        }
    }

    /// The complete job that the farm must receive for an account.
    pub fn job(&self, account: &str) -> Result<platen_shared::job::RenderJob> {
        let mut job = json!({
            "source": { "html": "<p>x</p>" },
            "options": {
                "viewport": { "width": 1280, "height": 720, "device_scale_factor": 1 },
                "wait_until": "load",
                "wait_for_timeout": 0,
                "output": { "image": { "format": "png", "region": "viewport" } },
            },
        });
        merge(&mut job, &self.job);
        job["account"] = account.into();
        if let Some(pieces @ Value::Array(_)) = job["source"].get("html") {
            let html = Vec::<Piece>::deserialize(pieces)?.iter().flat_map(Piece::bytes).collect();
            job["source"]["html"] = String::from_utf8(html)?.into();
        }
        serde_json::from_value(job).context("\"job\" does not describe a job")
    }
}

impl Piece {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Hex(bytes) => bytes.clone(),
            Self::Repeat { repeat, times } => repeat.repeat(*times).into_bytes(),
        }
    }
}

fn as_spelled<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

/// Reads `{"hex": "ef bb bf"}`.
fn hexadecimal<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Hex {
        hex: String,
    }
    let text = Hex::deserialize(deserializer)?.hex;
    let pairs = text.split_whitespace();
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(serde::de::Error::custom)).collect()
}

/// A template in Jinja with a request, and the text of its file or its error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filled {
    pub name: String,
    pub template: String,
    /// Sent byte for byte, also if it is `null`.
    #[serde(default, deserialize_with = "as_spelled")]
    data: Option<Box<RawValue>>,
    /// Bytes of an object with a long text that stands in place of `data`.
    padded: Option<usize>,
    variables: Option<Box<RawValue>>,
    /// What the file says.
    pub text: Option<String>,
    /// The status and message of a refusal. A 422 counts, a 400 does not.
    #[serde(default = "bad_request")]
    pub status: u16,
    pub error: Option<String>,
}

impl Filled {
    /// Its request.
    pub fn body(&self, template_id: &str) -> String {
        let data = match (&self.data, self.padded) {
            (Some(data), _) => data.get().to_owned(),
            (None, Some(bytes)) => format!("{{\"pad\":\"{}\"}}", "x".repeat(bytes - 10)),
            (None, None) => String::new(),
        };
        let variables = self.variables.as_ref().map_or("", |variables| variables.get());
        let field = |name, json: &str| {
            if json.is_empty() { String::new() } else { format!(",\"{name}\":{json}") }
        };
        let fields = field("data", &data) + &field("variables", variables);
        format!("{{\"templateId\":\"{template_id}\",\"format\":\"pdf\"{fields}}}")
    }

    /// Whether the attempt counts.
    pub fn is_counted(&self) -> bool {
        self.error.is_none() || self.status == 422
    }
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return };
    for (name, change) in patch {
        match change {
            Value::Null => {
                if let Some(target) = target.as_object_mut() {
                    target.remove(name);
                }
            }
            Value::Object(_) => {
                if !target[name].is_object() {
                    target[name] = Value::Object(serde_json::Map::new());
                }
                merge(&mut target[name], change);
            }
            other => target[name] = other.clone(),
        }
    }
}

fn render() -> String {
    client::RENDER.to_owned()
}

fn default_name() -> String {
    "render.png".to_owned()
}

const fn bad_request() -> u16 {
    400
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_sent_byte_for_byte() {
        let text = r#"{"name": "x", "json": {"a":1,  "a":1e400, "b":"\ud800"}, "error": "x"}"#;
        let case: Golden = serde_json::from_str(text).unwrap();
        assert_eq!(case.bytes(""), r#"{"a":1,  "a":1e400, "b":"\ud800"}"#);
        assert_eq!((case.status, &*case.endpoint), (400, "/v1/render"));
    }

    #[test]
    fn pieces_can_be_any_bytes() {
        let text = r#"{"name": "x", "body": [{"hex": "ef bb bf 00"}, "{", {"repeat": "[]", "times": 3}], "error": "x"}"#;
        let case: Golden = serde_json::from_str(text).unwrap();
        assert_eq!(case.bytes(""), &b"\xef\xbb\xbf\0{[][][]"[..]);
    }

    #[test]
    fn patches_add_replace_and_remove() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "d": 3});
        merge(&mut value, &json!({"a": {"b": null, "e": {"f": 1}}, "d": 4}));
        assert_eq!(value, json!({"a": {"c": 2, "e": {"f": 1}}, "d": 4}));
    }

    #[test]
    fn every_line_is_a_case() {
        assert!(!invalid().unwrap().is_empty());
        for case in filled().unwrap() {
            assert!(case.text.is_some() != case.error.is_some(), "{}", case.name);
        }
        for case in valid().unwrap() {
            case.job("acc").unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
        }
    }
}
