//! One pass over the outer object of a request body, which finds the values of the known fields before
//! any of them is parsed.
//!
//! Invariant: unknown fields are not stored, so a body of millions of unknown fields needs no memory
//! beyond its own bytes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use strum::EnumCount as _;

use super::{
    field::Field,
    field_name::{FieldName, FieldPath},
    invalid::InvalidRequest,
};

/// The values of the known fields as slices of the body.
#[derive(Clone)]
pub(super) struct Object<'a>([Option<&'a RawValue>; FieldName::COUNT]);

impl<'a> Object<'a> {
    /// Reads a body that may have some fields. Syntax errors have precedence over repeated and unknown fields, of which the
    /// first is reported.
    pub(super) fn read(known: &[FieldName], body: &'a [u8]) -> Result<Self, InvalidRequest> {
        let text = std::str::from_utf8(body).map_err(|_| InvalidRequest::NotUtf8)?;
        if text.starts_with('\u{feff}') {
            return Err(InvalidRequest::ByteOrderMark);
        }
        if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
            return Err(InvalidRequest::EmptyBody);
        }
        let mut problem = None;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let object = deserializer
            .deserialize_map(ObjectVisitor { known, problem: &mut problem })
            .and_then(|object| deserializer.end().map(|()| object));
        let object = object.map_err(|error| {
            // The parser stops at the first token of another type, and a syntax error may follow.
            let error =
                if error.is_data() { serde_json::from_str::<IgnoredAny>(text).err() } else { Some(error) };
            error.map_or(InvalidRequest::NotAnObject, |error| InvalidRequest::Syntax(error.to_string()))
        })?;
        problem.map_or(Ok(object), Err)
    }

    pub(super) fn field(&self, name: FieldName) -> Field<'a> {
        Field { name: name.into(), value: self.value(name) }
    }

    /// The JSON text of a field's value, if the body has the field.
    pub(super) fn value(&self, name: FieldName) -> Option<&'a RawValue> {
        self.0[name as usize]
    }

    /// The fields that the body has.
    pub(super) fn names(&self) -> impl Iterator<Item = FieldName> {
        FieldName::all().filter(|name| self.value(*name).is_some())
    }

    /// Gives a field a value.
    pub(super) fn set(&mut self, name: FieldName, value: Option<&'a RawValue>) {
        self.0[name as usize] = value;
    }
}

impl Default for Object<'_> {
    fn default() -> Self {
        Self([None; FieldName::COUNT])
    }
}

struct ObjectVisitor<'p> {
    known: &'p [FieldName],
    /// The first problem. The rest of the document is still read, because of possible syntax errors.
    problem: &'p mut Option<InvalidRequest>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self { known, problem } = self;
        let mut object = Object::default();
        while let Some(name) = map.next_key_seed(NameVisitor { known, problem })? {
            match name {
                Some(name) if object.0[name as usize].is_none() => {
                    object.0[name as usize] = Some(map.next_value()?);
                }
                name => {
                    map.next_value::<IgnoredAny>()?;
                    if let Some(name) = name {
                        problem.get_or_insert(InvalidRequest::Repeated(name.into()));
                    }
                }
            }
        }
        Ok(object)
    }
}

/// Reads the name of a field; `None` for an unknown one, after the problem was set.
struct NameVisitor<'p> {
    known: &'p [FieldName],
    problem: &'p mut Option<InvalidRequest>,
}

impl<'de> DeserializeSeed<'de> for NameVisitor<'_> {
    type Value = Option<FieldName>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameVisitor<'_> {
    type Value = Option<FieldName>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let known = self.known.iter().copied();
        let field = known.clone().find(|field| field.as_str() == name);
        if field.is_none() {
            self.problem
                .get_or_insert_with(|| InvalidRequest::unknown(None, name, known.map(FieldPath::from)));
        }
        Ok(field)
    }
}
