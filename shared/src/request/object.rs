//! Reads the JSON text of a request body: the values of its fields, or the message that names the field and the rule.
//!
//! One pass over an object finds the values of its members before any of them is parsed. Invariant: unknown fields are not
//! stored, so a body of millions of unknown fields needs no memory beyond its own bytes. `null` is not a value of any type.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::RangeInclusive, str::FromStr};

use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use strum::VariantNames;

use super::{
    FieldKind,
    field_name::{FieldName, FieldPath},
    invalid::{InvalidRequest, quoted},
    other_services,
};
use crate::{
    job::{TemplateData, Variable},
    length::Length,
    limits, template,
    text::shortened,
};

/// The JSON texts of the fields of a body, in the order of the contract.
#[derive(Debug, Clone, Default)]
pub(super) struct Object<'a>(BTreeMap<FieldName, &'a RawValue>);

impl<'a> Object<'a> {
    /// Reads a body that may have some fields. Syntax errors have precedence over repeated and unknown fields, of which the
    /// first is reported.
    pub(super) fn read(known: &[FieldName], body: &'a [u8]) -> Result<Self, InvalidRequest> {
        let invalid = |rule: &str| Err(InvalidRequest::Body(rule.to_owned()));
        let Ok(text) = std::str::from_utf8(body) else { return invalid("must be UTF-8") };
        if text.starts_with('\u{feff}') {
            return invalid("must be JSON without a byte order mark");
        }
        if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
            return invalid("is empty; it must be a JSON object");
        }
        let known: Vec<FieldPath> = known.iter().copied().map(FieldPath::from).collect();
        match members(text, None, &known) {
            Ok(values) => {
                let fields = known.iter().zip(values?);
                Ok(Self(fields.filter_map(|(path, value)| Some((path.field, value?))).collect()))
            }
            // The parser stops at the first token of another type, and a syntax error may follow.
            Err(error) => {
                let error = if error.is_data() {
                    serde_json::from_str::<IgnoredAny>(text).err()
                } else {
                    Some(error)
                };
                error.map_or_else(
                    || invalid("must be a JSON object"),
                    |error| invalid(&format!("is not valid JSON: {error}")),
                )
            }
        }
    }

    pub(super) fn field(&self, name: FieldName) -> Field<'a> {
        Field { name: name.into(), value: self.value(name) }
    }

    /// The JSON text of a field's value, if the body has the field.
    pub(super) fn value(&self, name: FieldName) -> Option<&'a RawValue> {
        self.0.get(&name).copied()
    }

    /// Whether a field has a value, and not the default of a boolean.
    pub(super) fn gives(&self, name: FieldName) -> bool {
        let default = name.spec().default.filter(|default| *default == "true").unwrap_or("false");
        self.value(name).is_some_and(|value| value.get() != default)
    }

    /// The fields that the body has.
    pub(super) fn names(&self) -> impl Iterator<Item = FieldName> {
        self.0.keys().copied()
    }

    /// Adds those fields of another body that `is_added` chooses.
    pub(super) fn add(&mut self, other: &Self, is_added: impl Fn(FieldName) -> bool) {
        self.0.extend(other.0.iter().filter(|(name, _)| is_added(**name)));
    }
}

/// The values of the known members of an object, or the first member that is repeated or unknown.
fn members<'a>(
    json: &'a str,
    of: Option<FieldPath>,
    known: &[FieldPath],
) -> serde_json::Result<Result<Vec<Option<&'a RawValue>>, InvalidRequest>> {
    let mut values = vec![None; known.len()];
    let read = each_member(json, |name, value| {
        let Some(at) = known.iter().position(|path| path.last() == name) else {
            return Err(InvalidRequest::unknown(of, &name, known));
        };
        match values[at].replace(value) {
            None => Ok(()),
            Some(_) => Err(InvalidRequest::Repeated(known[at])),
        }
    })?;
    Ok(read.map(|()| values))
}

/// Calls `visit` with the members of an object until it fails. The rest is still read, because of possible syntax errors.
fn each_member<'a>(
    json: &'a str,
    visit: impl FnMut(Cow<'a, str>, &'a RawValue) -> Result<(), InvalidRequest>,
) -> serde_json::Result<Result<(), InvalidRequest>> {
    struct Members<F>(F);

    impl<'de, F> Visitor<'de> for Members<F>
    where
        F: FnMut(Cow<'de, str>, &'de RawValue) -> Result<(), InvalidRequest>,
    {
        type Value = Result<(), InvalidRequest>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                let result = (self.0)(name, map.next_value()?);
                if result.is_err() {
                    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    return Ok(result);
                }
            }
            Ok(Ok(()))
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(json);
    let result = deserializer.deserialize_map(Members(visit))?;
    deserializer.end()?;
    Ok(result)
}

/// A field, with the JSON text of its value if the body has one.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) name: FieldPath,
    pub(super) value: Option<&'a RawValue>,
}

type Parsed<T> = Result<Option<T>, InvalidRequest>;

impl<'a> Field<'a> {
    /// The error of a value that breaks a rule.
    pub(super) fn rule(self, rule: impl fmt::Display) -> InvalidRequest {
        let hint = self.value.and_then(|value| other_services::hint(self.name, value.get()));
        InvalidRequest::Rule { field: self.name, rule: format!("{rule}{}", hint.unwrap_or_default()) }
    }

    pub(super) fn required(self) -> Result<Self, InvalidRequest> {
        if self.value.is_some() { Ok(self) } else { Err(InvalidRequest::Required(self.name)) }
    }

    pub(super) fn string(self) -> Parsed<String> {
        self.value.map(|value| self.text(value).map(Cow::into_owned)).transpose()
    }

    pub(super) fn boolean(self, default: bool) -> Result<bool, InvalidRequest> {
        match self.value.map(RawValue::get) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(self.rule("must be true or false")),
        }
    }

    pub(super) fn choice<T: FromStr + VariantNames>(self) -> Parsed<T> {
        let Some(value) = self.value else { return Ok(None) };
        let chosen = self.text(value).ok().and_then(|text| text.parse().ok());
        chosen.map(Some).ok_or_else(|| self.rule(format!("must be one of {}", quoted(T::VARIANTS))))
    }

    /// A number within the range of the field.
    pub(super) fn number<T: TryFrom<f64>>(self) -> Parsed<T> {
        let FieldKind::Number { min, max, whole } = self.name.field.spec().kind else {
            unreachable!("{} is not a number", self.name)
        };
        let kind = match self.name.field {
            FieldName::WaitForTimeout => "number of milliseconds",
            _ if whole => "whole number",
            _ => "number",
        };
        self.number_in(kind, min..=max, whole)
    }

    /// A number within a range; `kind` is its name in the message.
    pub(super) fn number_in<T: TryFrom<f64>>(
        self,
        kind: &str,
        range: RangeInclusive<f64>,
        is_whole: bool,
    ) -> Parsed<T> {
        let Some(value) = self.value else { return Ok(None) };
        let number = is_number(value).then(|| value.get().parse::<f64>().ok()).flatten();
        let is_valid = |number: &f64| range.contains(number) && !(is_whole && number.fract() != 0.0);
        let number = number.filter(is_valid).and_then(|number| T::try_from(number).ok());
        let rule = || self.rule(format!("must be a {kind} from {} to {}", range.start(), range.end()));
        number.map(Some).ok_or_else(rule)
    }

    /// Text that `T` accepts, or the message of its error after the name of the field.
    pub(super) fn text_of<T: TryFrom<String, Error: fmt::Display>>(self) -> Parsed<T> {
        let Some(text) = self.string()? else { return Ok(None) };
        T::try_from(text).map(Some).map_err(|error| self.rule(error))
    }

    /// A number of CSS pixels, or text with a unit.
    pub(super) fn length(self) -> Parsed<Length> {
        let Some(value) = self.value else { return Ok(None) };
        let length = if is_number(value) {
            value.get().parse::<f64>().ok().and_then(|pixels| Length::try_from(pixels).ok())
        } else {
            self.text(value).ok().and_then(|text| Length::parse(&text))
        };
        length.map(Some).ok_or_else(|| {
            self.rule(
                "must be a length: a number of CSS pixels from 0, or text such as \"12mm\" in px, in, cm, mm or pt",
            )
        })
    }

    /// The values of an object's members, which are the fields `field.member`; `None` if the value is not an object.
    pub(super) fn members<const N: usize>(self, names: [&'static str; N]) -> Parsed<[Field<'a>; N]> {
        let Some(value) = self.value.filter(|value| value.get().starts_with('{')) else { return Ok(None) };
        let known = names.map(|member| FieldPath { member: Some(member), ..self.name });
        // The syntax was checked with that of the body.
        let values = members(value.get(), Some(self.name), &known).map_err(|error| self.rule(error))??;
        Ok(Some(std::array::from_fn(|at| Field { name: known[at], value: values[at] })))
    }

    /// The values of an array, of which those after the first `max + 1` are not read; `None` if the value is not an array.
    pub(super) fn items(self, max: usize) -> Option<Vec<&'a RawValue>> {
        let value = self.value.filter(|value| value.get().starts_with('['))?;
        let mut items = Vec::new();
        let visitor = ItemsVisitor { max, items: &mut items };
        let read = serde_json::Deserializer::from_str(value.get()).deserialize_seq(visitor);
        (read.is_ok() || items.len() > max).then_some(items)
    }

    /// Calls `visit` with the members of an object, whose names are the caller's, until it fails.
    pub(super) fn each_member(
        self,
        rule: &str,
        visit: impl FnMut(Cow<'a, str>, &'a RawValue) -> Result<(), InvalidRequest>,
    ) -> Result<(), InvalidRequest> {
        let Some(value) = self.value else { return Ok(()) };
        each_member(value.get(), visit).map_err(|_| self.rule(rule))?
    }

    pub(super) fn variables(self) -> Parsed<BTreeMap<String, Variable>> {
        let mut variables = BTreeMap::new();
        self.each_member("must be an object of strings and numbers", |name, value| {
            if variables.len() == limits::MAX_VARIABLES {
                return Err(self.rule(format!("must have at most {} entries", limits::MAX_VARIABLES)));
            }
            let variable = if is_number(value) {
                // Numbers keep their spelling: 10.50 stays 10.50.
                Variable::Number(value.get().to_owned())
            } else if value.get().starts_with('"') {
                Variable::Text(self.text(value)?.into_owned())
            } else {
                let rule = "must hold strings and numbers only;";
                return Err(self.rule(format!("{rule} \"{}\" is neither", shortened(&name))));
            };
            let name = template::normalized(&name).into_owned();
            match variables.insert(name.clone(), variable) {
                None => Ok(()),
                Some(_) => Err(self.rule(format!("holds \"{}\" twice", shortened(&name)))),
            }
        })?;
        Ok(self.value.map(|_| variables))
    }

    /// Values of a template, none of which has the name of one of the others.
    pub(super) fn data(self, others: &BTreeMap<String, Variable>) -> Parsed<TemplateData> {
        let Some(value) = self.value else { return Ok(None) };
        let data = TemplateData::try_from(value).map_err(|error| self.rule(error))?;
        if others.is_empty() {
            return Ok(Some(data));
        }
        self.each_member("must be an object", |name, _| {
            if others.contains_key(&*name) {
                return Err(self.rule(format!("has \"{}\", and \"variables\" has it too", shortened(&name))));
            }
            Ok(())
        })?;
        Ok(Some(data))
    }

    pub(super) fn text(self, value: &'a RawValue) -> Result<Cow<'a, str>, InvalidRequest> {
        let content = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        match content.ok_or_else(|| self.rule("must be a string"))? {
            // Lone surrogates are no text.
            escaped if escaped.contains('\\') => serde_json::from_str(value.get())
                .map(Cow::Owned)
                .map_err(|_| self.rule("must be valid Unicode text")),
            content => Ok(Cow::Borrowed(content)),
        }
    }
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

struct ItemsVisitor<'i, 'de> {
    max: usize,
    items: &'i mut Vec<&'de RawValue>,
}

impl<'de> Visitor<'de> for ItemsVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(item) = array.next_element()? {
            self.items.push(item);
            // The syntax of the rest was checked with that of the body.
            if self.items.len() > self.max {
                return Err(A::Error::custom("too many values"));
            }
        }
        Ok(())
    }
}
