//! The outer object of a body: which known field holds what, before any value is looked at.
//!
//! Invariant: memory is bounded by the body itself. A field that is not known is never stored, so
//! a body of millions of unknown fields costs nothing beyond its bytes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::field::InvalidRequest;

/// The values of the `known` fields in a JSON object, in the order of `known`.
pub(super) fn fields<'a>(
    body: &'a [u8],
    known: &[&'static str],
) -> Result<Vec<Option<&'a RawValue>>, InvalidRequest> {
    let text = std::str::from_utf8(body).map_err(|_| InvalidRequest::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(InvalidRequest::ByteOrderMark);
    }
    if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
        return Err(InvalidRequest::EmptyBody);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let object =
        deserializer.deserialize_map(Known(known)).and_then(|object| deserializer.end().map(|()| object));
    let object = object.map_err(|error| {
        // The parser stops at the first token of what is no object; syntax wins over that.
        let error =
            if error.is_data() { serde_json::from_str::<IgnoredAny>(text).err() } else { Some(error) };
        error.map_or(InvalidRequest::NotAnObject, |error| InvalidRequest::Syntax(error.to_string()))
    })?;
    match object.problem {
        Some(problem) => Err(problem),
        None => Ok(object.values),
    }
}

struct Object<'a> {
    values: Vec<Option<&'a RawValue>>,
    /// The first one; the rest of the document is still read, because syntax errors win.
    problem: Option<InvalidRequest>,
}

struct Known<'k>(&'k [&'static str]);

impl<'de> Visitor<'de> for Known<'_> {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Object { values: vec![None; self.0.len()], problem: None };
        while let Some(position) = map.next_key_seed(Name { known: self.0, problem: &mut object.problem })? {
            match position {
                Some(index) if object.values[index].is_none() => {
                    object.values[index] = Some(map.next_value()?);
                }
                Some(index) => {
                    map.next_value::<IgnoredAny>()?;
                    object.problem.get_or_insert(InvalidRequest::Repeated(self.0[index]));
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(object)
    }
}

/// Reads one field name: its place among the known ones, or `None` with the problem noted.
struct Name<'k, 'p> {
    known: &'k [&'static str],
    problem: &'p mut Option<InvalidRequest>,
}

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let position = self.known.iter().position(|known| *known == name);
        if position.is_none() {
            self.problem.get_or_insert_with(|| InvalidRequest::unknown(name, self.known));
        }
        Ok(position)
    }
}
