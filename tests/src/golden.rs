//! Golden cases: one file for each request and its expected result. `golden/README.md` describes the format.
//!
//! Invariant: the server gets exactly the bytes of the file. A file that is not a valid case is a failing case.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{client, settings::crate_dir};

/// The placeholder in a body for the id of the fixture template.
pub const TEMPLATE_ID: &str = "$TEMPLATE_ID";

/// The parts of a request.
#[derive(Debug, Clone, Copy)]
pub struct Input<'c> {
    endpoint: &'c str,
    json: Option<&'c RawValue>,
    body: Option<&'c [Piece]>,
}

/// A part of a body.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Bytes in hexadecimal, two digits each.
    #[serde(deserialize_with = "hexadecimal")]
    Hex(Vec<u8>),
    /// A repeated text.
    Repeat {
        /// The text.
        repeat: String,
        /// How many times.
        times: usize,
    },
}

/// A request that is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invalid {
    /// The reason for the case if its name does not say it.
    #[serde(default)]
    pub about: String,
    #[serde(default = "render")]
    endpoint: String,
    json: Option<Box<RawValue>>,
    body: Option<Vec<Piece>>,
    /// The status of the answer.
    #[serde(default = "bad_request")]
    pub status: u16,
    /// The exact message.
    pub error: String,
    /// Whether JSON Schema can express the violated rule.
    #[serde(default = "yes")]
    pub schema_can_tell: bool,
}

/// A request that becomes a job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Valid {
    /// The reason for the case if its name does not say it.
    #[serde(default)]
    pub about: String,
    #[serde(default = "render")]
    endpoint: String,
    json: Option<Box<RawValue>>,
    body: Option<Vec<Piece>>,
    /// The difference from the default job, as a JSON merge patch (RFC 7396) in which `source.html` may be
    /// pieces.
    #[serde(default)]
    job: Value,
    /// The name of the file.
    #[serde(default = "default_name")]
    pub file_name: String,
    /// Whether the schema accepts it, which is stricter than the API where code is generated from it.
    #[serde(default = "yes")]
    pub schema_accepts: bool,
}

/// A case and the name of its file.
pub type Named<C> = (String, Result<C>);

/// Every invalid case.
pub fn invalid() -> Result<Vec<Named<Invalid>>> {
    load("golden/invalid")
}

/// Every valid case.
pub fn valid() -> Result<Vec<Named<Valid>>> {
    load("golden/valid")
}

fn load<C: for<'de> Deserialize<'de> + Case>(directory: &str) -> Result<Vec<Named<C>>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(crate_dir().join(directory))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            cases.push((name, read(&path).with_context(|| path.display().to_string())));
        }
    }
    cases.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(cases)
}

fn read<C: for<'de> Deserialize<'de> + Case>(path: &Path) -> Result<C> {
    let case: C = serde_json::from_slice(&fs::read(path)?)?;
    case.input().check()?;
    Ok(case)
}

/// A golden case of either kind.
pub trait Case {
    /// The request.
    fn input(&self) -> Input<'_>;
}

impl Case for Invalid {
    fn input(&self) -> Input<'_> {
        Input { endpoint: &self.endpoint, json: self.json.as_deref(), body: self.body.as_deref() }
    }
}

impl Case for Valid {
    fn input(&self) -> Input<'_> {
        Input { endpoint: &self.endpoint, json: self.json.as_deref(), body: self.body.as_deref() }
    }
}

impl Valid {
    /// The complete job that the farm must receive for an account.
    pub fn job(&self, account: &str) -> Result<platen_shared::job::RenderJob> {
        let text = fs::read_to_string(crate_dir().join("golden/default-job.json"))?;
        let mut job: Value = serde_json::from_str(&text)?;
        merge(&mut job, &self.job);
        job["account"] = account.into();
        if let Some(pieces @ Value::Array(_)) = job["source"].get("html") {
            let html = Vec::<Piece>::deserialize(pieces)?.iter().flat_map(Piece::bytes).collect();
            job["source"]["html"] = String::from_utf8(html)?.into();
        }
        serde_json::from_value(job).context("\"job\" does not describe a job")
    }
}

impl Input<'_> {
    /// The path of the request.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint
    }

    /// Whether it needs the fixture template.
    #[must_use]
    pub fn needs_template(&self) -> bool {
        self.json.is_some_and(|json| json.get().contains(TEMPLATE_ID))
    }

    /// The bytes of the body.
    #[must_use]
    pub fn bytes(&self, template_id: &str) -> Bytes {
        match (self.json, self.body) {
            (Some(json), _) => json.get().replace(TEMPLATE_ID, template_id).into(),
            (None, Some(pieces)) => pieces.iter().flat_map(Piece::bytes).collect::<Vec<u8>>().into(),
            (None, None) => Bytes::new(),
        }
    }

    fn check(&self) -> Result<()> {
        ensure!(self.json.is_some() != self.body.is_some(), "a case has either \"json\" or \"body\"");
        let known = [client::RENDER, client::TEMPLATE];
        ensure!(known.contains(&self.endpoint), "{} is no endpoint", self.endpoint);
        Ok(())
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
        let text = r#"{"json": {"a":1,  "a":1e400, "b":"\ud800"}, "error": "x"}"#;
        let case: Invalid = serde_json::from_str(text).unwrap();
        assert_eq!(case.input().bytes(""), r#"{"a":1,  "a":1e400, "b":"\ud800"}"#);
        assert_eq!((case.status, case.input().endpoint()), (400, "/v1/render"));
    }

    #[test]
    fn pieces_can_be_any_bytes() {
        let text = r#"{"body": [{"hex": "ef bb bf 00"}, "{", {"repeat": "[]", "times": 3}], "error": "x"}"#;
        let case: Invalid = serde_json::from_str(text).unwrap();
        assert_eq!(case.input().bytes(""), &b"\xef\xbb\xbf\0{[][][]"[..]);
    }

    #[test]
    fn patches_add_replace_and_remove() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "d": 3});
        merge(&mut value, &json!({"a": {"b": null, "e": {"f": 1}}, "d": 4}));
        assert_eq!(value, json!({"a": {"c": 2, "e": {"f": 1}}, "d": 4}));
    }

    #[test]
    fn every_file_is_a_valid_case() {
        for (name, case) in invalid().unwrap() {
            case.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
        for (name, case) in valid().unwrap() {
            case.and_then(|case| case.job("acc")).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }
}
