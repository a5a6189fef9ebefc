//! One field of a request body: from its JSON text to a value, or to the message that names the field and
//! the rule.
//!
//! Invariant: `null` is not a value of any type.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    ops::RangeInclusive,
};

use crate::{length::Length, limits, template};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    field_name::{FieldName, FieldPath},
    invalid::InvalidRequest,
};

/// A field, with the JSON text of its value if the body has one.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) name: FieldPath,
    pub(super) value: Option<&'a RawValue>,
}

type Parsed<T> = Result<Option<T>, InvalidRequest>;

impl<'a> Field<'a> {
    pub(super) fn required(self) -> Result<Self, InvalidRequest> {
        if self.value.is_some() { Ok(self) } else { Err(InvalidRequest::Required(self.name)) }
    }

    pub(super) fn string(self) -> Parsed<String> {
        self.value.map(|value| self.text(value).map(Cow::into_owned)).transpose()
    }

    pub(super) fn boolean(self) -> Parsed<bool> {
        match self.value.map(RawValue::get) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(InvalidRequest::NotABoolean(self.name)),
        }
    }

    pub(super) fn choice<T>(
        self,
        choices: &'static [&'static str],
        parse: fn(&str) -> Option<T>,
    ) -> Parsed<T> {
        let Some(value) = self.value else { return Ok(None) };
        let chosen = self.text(value).ok().and_then(|text| parse(&text));
        chosen.map(Some).ok_or(InvalidRequest::Choice { field: self.name, choices })
    }

    /// A number within the range; `kind` names those that `make` accepts.
    pub(super) fn number<T, N: Copy + Into<f64>>(
        self,
        kind: &'static str,
        range: RangeInclusive<N>,
        make: fn(f64) -> Option<T>,
    ) -> Parsed<T> {
        let Some(value) = self.value else { return Ok(None) };
        let number = is_number(value).then(|| value.get().parse::<f64>().ok()).flatten();
        let (min, max) = ((*range.start()).into(), (*range.end()).into());
        let number = number.filter(|number| (min..=max).contains(number));
        number.and_then(make).map(Some).ok_or(InvalidRequest::Number { field: self.name, kind, min, max })
    }

    /// A whole number within the range.
    pub(super) fn whole_number<T: TryFrom<f64>, N: Copy + Into<f64>>(
        self,
        range: RangeInclusive<N>,
    ) -> Parsed<T> {
        self.number("whole number", range, |number| {
            (number.fract() == 0.0).then(|| T::try_from(number).ok()).flatten()
        })
    }

    /// Text that `T` accepts, or the message of its error after the name of the field.
    pub(super) fn text_of<T: TryFrom<String, Error: fmt::Display>>(self) -> Parsed<T> {
        let Some(text) = self.string()? else { return Ok(None) };
        let rule = |error: T::Error| InvalidRequest::Rule { field: self.name, rule: error.to_string() };
        T::try_from(text).map(Some).map_err(rule)
    }

    /// A number of CSS pixels, or text with a unit.
    pub(super) fn length(self) -> Parsed<Length> {
        let Some(value) = self.value else { return Ok(None) };
        let length = if is_number(value) {
            value.get().parse::<f64>().ok().and_then(|pixels| Length::try_from(pixels).ok())
        } else {
            self.text(value).ok().and_then(|text| Length::parse(&text))
        };
        length.map(Some).ok_or(InvalidRequest::Length(self.name))
    }

    /// The values of an object's members, which are the fields `field.member`; `None` if the value is not an object.
    pub(super) fn members<const N: usize>(self, names: &'static [&'static str; N]) -> Parsed<[Field<'a>; N]> {
        let Some(value) = self.value.filter(|value| value.get().starts_with('{')) else { return Ok(None) };
        let mut problem = None;
        let visitor = MembersVisitor { of: self.name, names, problem: &mut problem };
        let members = serde_json::Deserializer::from_str(value.get()).deserialize_map(visitor);
        // The syntax was checked with that of the body.
        let members = members.map_err(|_| InvalidRequest::NotAnObject)?;
        problem.map_or(Ok(Some(members)), Err)
    }

    /// The values of an array, of which those after the first `max + 1` are left out; `None` if the value is not an array.
    pub(super) fn items(self, max: usize) -> Option<Vec<&'a RawValue>> {
        let value = self.value.filter(|value| value.get().starts_with('['))?;
        serde_json::Deserializer::from_str(value.get()).deserialize_seq(ItemsVisitor { max }).ok()
    }

    pub(super) fn file_name(self) -> Parsed<String> {
        let name = self.string()?;
        match name.as_ref().map(|name| name.chars().count()) {
            None | Some(1..=limits::MAX_FILE_NAME_CHARS) => Ok(name),
            Some(_) => Err(InvalidRequest::FileNameLength),
        }
    }

    pub(super) fn variables(self) -> Parsed<BTreeMap<String, String>> {
        let Some(value) = self.value else { return Ok(None) };
        let visited = serde_json::Deserializer::from_str(value.get()).deserialize_any(VariablesVisitor);
        visited.map_err(|_| InvalidRequest::VariablesType)?.map(Some)
    }

    pub(super) fn text(self, value: &'a RawValue) -> Result<Cow<'a, str>, InvalidRequest> {
        if !is_string(value) {
            return Err(InvalidRequest::NotAString(self.name));
        }
        unescaped(value).ok_or(InvalidRequest::NotUnicode(self.name))
    }
}

fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The text of a JSON string, borrowed if it contains no escape; `None` for lone surrogates.
fn unescaped(value: &RawValue) -> Option<Cow<'_, str>> {
    let content = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if content.contains('\\') {
        serde_json::from_str(value.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(content))
    }
}

struct VariablesVisitor;

impl<'de> Visitor<'de> for VariablesVisitor {
    type Value = Result<BTreeMap<String, String>, InvalidRequest>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut variables = BTreeMap::new();
        let mut problem = None;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if problem.is_some() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: &RawValue = map.next_value()?;
            let text = if is_string(value) {
                unescaped(value)
            } else {
                // Numbers keep their spelling: 10.50 stays 10.50.
                is_number(value).then(|| Cow::Borrowed(value.get()))
            };
            if variables.len() == limits::MAX_VARIABLES {
                problem = Some(InvalidRequest::TooManyVariables);
            } else if let Some(text) = text {
                match variables.entry(template::normalized(&name).into_owned()) {
                    Entry::Vacant(entry) => {
                        entry.insert(text.into_owned());
                    }
                    Entry::Occupied(entry) => {
                        problem = Some(InvalidRequest::VariableRepeated(entry.key().clone()));
                    }
                }
            } else if is_string(value) {
                problem = Some(InvalidRequest::NotUnicode(FieldName::Variables.into()));
            } else {
                problem = Some(InvalidRequest::VariableType(name.into_owned()));
            }
        }
        Ok(problem.map_or(Ok(variables), Err))
    }
}

struct ItemsVisitor {
    max: usize,
}

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = array.next_element()? {
            if items.len() <= self.max {
                items.push(item);
            }
        }
        Ok(items)
    }
}

struct MembersVisitor<'p, const N: usize> {
    of: FieldPath,
    names: &'static [&'static str; N],
    /// The first problem.
    problem: &'p mut Option<InvalidRequest>,
}

impl<'de, const N: usize> Visitor<'de> for MembersVisitor<'_, N> {
    type Value = [Field<'de>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let path = |member| FieldPath { member: Some(member), ..self.of };
        let mut members = self.names.map(|name| Field { name: path(name), value: None });
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let value: &RawValue = map.next_value()?;
            match members.iter_mut().find(|member| member.name.member == Some(&name)) {
                Some(member) if member.value.is_none() => member.value = Some(value),
                Some(member) => {
                    self.problem.get_or_insert(InvalidRequest::Repeated(member.name));
                }
                None => {
                    let known = self.names.map(path);
                    self.problem.get_or_insert_with(|| InvalidRequest::unknown(Some(self.of), &name, known));
                }
            }
        }
        Ok(members)
    }
}
