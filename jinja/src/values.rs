//! The values of a template, from JSON.
//!
//! Invariant: a value takes at most some 20 bytes of memory for each byte of its text, and the members of an object are found by
//! binary search, because neither is counted as steps.

use std::sync::Arc;

use minijinja::{
    Value,
    value::{Enumerator, Object, ObjectRepr},
};
use serde_json::value::RawValue;

/// Maximum length of `data`, in bytes of its JSON text.
pub const MAX_DATA_BYTES: usize = 5 * 1024 * 1024;
/// Maximum of objects and arrays within each other in `data`, with `data` itself.
pub const MAX_DATA_LEVELS: usize = 32;

/// A text that is not the JSON of `data`. Displayed, it continues the sentence that begins with the field's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum InvalidData {
    #[error("must be an object")]
    NoObject,
    #[error("must have at most {MAX_DATA_BYTES} bytes of text")]
    TooLarge,
    #[error("must have at most {MAX_DATA_LEVELS} levels")]
    TooDeep,
    #[error("must be valid Unicode text")]
    NoText,
    #[error("holds \"{0}\" twice in one object")]
    Repeated(String),
    #[error("must have numbers up to 1.7e308")]
    NumberTooLarge,
}

/// The values of a template by name.
#[derive(Debug, Default)]
pub struct Values {
    members: Vec<(Value, Value)>,
}

impl Values {
    /// The members of `data`, a JSON text.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn of_data(json: &str) -> Result<Self, InvalidData> {
        if json.len() > MAX_DATA_BYTES {
            return Err(InvalidData::TooLarge);
        }
        // The reader relies on valid JSON.
        let valid: &RawValue = serde_json::from_str(json).map_err(|_| InvalidData::NoObject)?;
        let mut reader = Reader { rest: valid.get().trim_start() };
        if !reader.rest.starts_with('{') {
            return Err(InvalidData::NoObject);
        }
        Ok(Self { members: reader.members(1)? })
    }

    /// Adds a text.
    pub fn add_text(&mut self, name: &str, text: &str) {
        self.members.push((Value::from(name), Value::from(text)));
    }

    /// Adds a number, as JSON spells it.
    ///
    /// # Errors
    /// [`InvalidData::NumberTooLarge`].
    pub fn add_number(&mut self, name: &str, json: &str) -> Result<(), InvalidData> {
        self.members.push((Value::from(name), number(json)?));
        Ok(())
    }

    pub(crate) fn into_value(self) -> Result<Value, InvalidData> {
        Members::of(self.members).map(Value::from_object)
    }
}

/// A reader of valid JSON.
struct Reader<'j> {
    rest: &'j str,
}

impl<'j> Reader<'j> {
    fn value(&mut self, level: usize) -> Result<Value, InvalidData> {
        match self.rest.as_bytes().first() {
            Some(b'{') => Members::of(self.members(level)?).map(Value::from_object),
            Some(b'[') => self.items(level),
            Some(b'"') => self.text(),
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(self.rest.len());
                match self.take(end) {
                    "null" => Ok(Value::from(())),
                    "true" => Ok(Value::from(true)),
                    "false" => Ok(Value::from(false)),
                    text => number(text),
                }
            }
        }
    }

    fn members(&mut self, level: usize) -> Result<Vec<(Value, Value)>, InvalidData> {
        let mut members = Vec::new();
        self.each(level, '}', |reader| {
            let name = reader.text()?;
            reader.skip();
            members.push((name, reader.value(level + 1)?));
            Ok(())
        })?;
        Ok(members)
    }

    fn items(&mut self, level: usize) -> Result<Value, InvalidData> {
        let mut items = Vec::new();
        self.each(level, ']', |reader| {
            items.push(reader.value(level + 1)?);
            Ok(())
        })?;
        items.shrink_to_fit();
        Ok(Value::from(items))
    }

    /// Reads what is between brackets.
    fn each(
        &mut self,
        level: usize,
        close: char,
        mut read: impl FnMut(&mut Self) -> Result<(), InvalidData>,
    ) -> Result<(), InvalidData> {
        if level > MAX_DATA_LEVELS {
            return Err(InvalidData::TooDeep);
        }
        self.skip();
        while !self.rest.starts_with(close) {
            read(self)?;
            self.skip_space();
            if self.rest.starts_with(',') {
                self.skip();
            }
        }
        self.take(1);
        Ok(())
    }

    fn text(&mut self) -> Result<Value, InvalidData> {
        let bytes = self.rest.as_bytes();
        let (mut end, mut is_escaped) = (1, false);
        while let Some(byte) = bytes.get(end).filter(|byte| **byte != b'"') {
            is_escaped |= *byte == b'\\';
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        let text = self.take(end + 1);
        if !is_escaped {
            return Ok(Value::from(&text[1..end]));
        }
        serde_json::from_str::<String>(text).map(Value::from).map_err(|_| InvalidData::NoText)
    }

    /// Takes the next character, which is one byte, with the space around it.
    fn skip(&mut self) {
        self.skip_space();
        self.take(1);
        self.skip_space();
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self, length: usize) -> &'j str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// A whole number exactly, if it has up to 128 bits; another one as the nearest double.
fn number(json: &str) -> Result<Value, InvalidData> {
    if let Ok(whole) = json.parse::<i128>()
        && json != "-0"
    {
        return Ok(i64::try_from(whole).map_or_else(|_| Value::from(whole), Value::from));
    }
    let double: f64 = json.parse().map_err(|_| InvalidData::NumberTooLarge)?;
    if double.is_finite() { Ok(Value::from(double)) } else { Err(InvalidData::NumberTooLarge) }
}

/// An object of JSON, in the order of its text.
#[derive(Debug)]
struct Members {
    members: Box<[(Value, Value)]>,
    /// Indexes of the members, by name.
    by_name: Box<[u32]>,
}

impl Members {
    fn of(members: Vec<(Value, Value)>) -> Result<Self, InvalidData> {
        let count = u32::try_from(members.len()).map_err(|_| InvalidData::TooLarge)?;
        let name = |index: &u32| members[*index as usize].0.as_str().unwrap_or_default();
        let mut by_name: Box<[u32]> = (0..count).collect();
        by_name.sort_unstable_by_key(name);
        let repeated = by_name.windows(2).find(|pair| name(&pair[0]) == name(&pair[1]));
        if let Some([first, ..]) = repeated {
            let shown: String = name(first).chars().take(100).collect();
            return Err(InvalidData::Repeated(shown));
        }
        Ok(Self { members: members.into(), by_name })
    }
}

impl Object for Members {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let name = |index: &u32| self.members[*index as usize].0.as_str().unwrap_or_default();
        let at = self.by_name.binary_search_by_key(&key, name).ok()?;
        Some(self.members[self.by_name[at] as usize].1.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let members = Arc::clone(self);
        let names = (0..self.members.len()).map(move |index| members.members[index].0.clone());
        Enumerator::Iter(Box::new(names))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.members.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(json: &str) -> String {
        let value = Values::of_data(&format!("{{\"v\":{json}}}")).unwrap().into_value().unwrap();
        value.get_attr("v").unwrap().to_string()
    }

    #[test]
    fn numbers_are_exact_or_as_short_as_possible() {
        for (json, expected) in [
            ("0", "0"),
            ("-7", "-7"),
            ("9007199254740993", "9007199254740993"),
            ("170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
            ("-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"),
            ("10.50", "10.5"),
            ("0.1", "0.1"),
            ("1.0", "1.0"),
            ("123456789.123456789", "123456789.12345679"),
        ] {
            assert_eq!(printed(json), expected, "{json}");
        }
        assert_eq!(Values::of_data(r#"{"v":1e309}"#).unwrap_err(), InvalidData::NumberTooLarge);
    }

    #[test]
    fn values_are_as_in_the_text() {
        let json = " {\n\"a\" : [ 1 , \"x\\\"\\u00e9,]}\" , null , { } , [ ] , true ] , \"größe\" : { \"b\":{\"c\":2}} } ";
        let value = Values::of_data(json).unwrap().into_value().unwrap();
        let expected = r#"{"a":[1,"x\"é,]}",null,{},[],true],"größe":{"b":{"c":2}}}"#;
        assert_eq!(serde_json::to_string(&value).unwrap(), expected);
        let many: Vec<String> = (0..1000).map(|index| format!("\"n{index}\":{index}")).collect();
        let value = Values::of_data(&format!("{{{}}}", many.join(","))).unwrap().into_value().unwrap();
        assert!((0..1000).all(|index| value.get_attr(&format!("n{index}")).unwrap() == Value::from(index)));
        assert!(value.get_attr("n1000").unwrap().is_undefined());
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "[]", "1", "null", "{", "{\"a\":}", "{} x", "{\"a\":01}"] {
            assert_eq!(Values::of_data(bad).unwrap_err(), InvalidData::NoObject, "{bad}");
        }
        let nested = |levels: usize| format!("{}1{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2));
        assert!(Values::of_data(&nested(MAX_DATA_LEVELS)).is_ok());
        assert_eq!(Values::of_data(&nested(MAX_DATA_LEVELS + 2)).unwrap_err(), InvalidData::TooDeep);
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(Values::of_data(&sized(MAX_DATA_BYTES)).is_ok());
        assert_eq!(Values::of_data(&sized(MAX_DATA_BYTES + 1)).unwrap_err(), InvalidData::TooLarge);
        assert_eq!(Values::of_data("{\"a\":\"\\ud800\"}").unwrap_err(), InvalidData::NoText);
        let twice = Values::of_data("{\"x\":{\"a\":1,\"b\":2,\"\\u0061\":3}}").unwrap_err();
        assert_eq!(twice, InvalidData::Repeated("a".into()));
    }
}
