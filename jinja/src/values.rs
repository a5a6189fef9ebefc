//! The values of a template, from JSON.
//!
//! Invariant: a value takes at most some 20 bytes of memory for each byte of its text, and the members of an object are found by
//! binary search, because neither is counted as steps.

use std::{collections::BTreeMap, sync::Arc};

use minijinja::{
    Value,
    value::{Enumerator, Object, ObjectRepr},
};
use platen_shared::job::Variable;

/// The members of `data`, the JSON of a [`TemplateData`](platen_shared::job::TemplateData), and of `variables` as one object.
pub(crate) fn values(data: &str, variables: &BTreeMap<String, Variable>) -> Value {
    let mut members = Reader { rest: data }.members();
    members.extend(variables.iter().map(|(name, variable)| {
        let value = match variable {
            Variable::Text(text) => Value::from(text.as_str()),
            Variable::Number(json) => number(json),
        };
        (Value::from(name.as_str()), value)
    }));
    Value::from_object(Members::of(members))
}

/// A reader of the JSON of a [`TemplateData`](platen_shared::job::TemplateData), on which it relies: valid JSON of few levels, in which no object has a name twice.
struct Reader<'j> {
    rest: &'j str,
}

impl<'j> Reader<'j> {
    fn value(&mut self) -> Value {
        match self.rest.as_bytes().first() {
            Some(b'{') => Value::from_object(Members::of(self.members())),
            Some(b'[') => self.items(),
            Some(b'"') => self.text(),
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(self.rest.len());
                match self.take(end) {
                    "null" => Value::from(()),
                    "true" => Value::from(true),
                    "false" => Value::from(false),
                    text => number(text),
                }
            }
        }
    }

    fn members(&mut self) -> Vec<(Value, Value)> {
        let mut members = Vec::new();
        self.each('}', |reader| {
            let name = reader.text();
            reader.skip();
            members.push((name, reader.value()));
        });
        members
    }

    fn items(&mut self) -> Value {
        let mut items = Vec::new();
        self.each(']', |reader| items.push(reader.value()));
        items.shrink_to_fit();
        Value::from(items)
    }

    /// Reads what is between brackets.
    fn each(&mut self, close: char, mut read: impl FnMut(&mut Self)) {
        self.skip();
        while !self.rest.starts_with(close) {
            read(self);
            self.skip_space();
            if self.rest.starts_with(',') {
                self.skip();
            }
        }
        self.take(1);
    }

    fn text(&mut self) -> Value {
        let bytes = self.rest.as_bytes();
        let (mut end, mut is_escaped) = (1, false);
        while let Some(byte) = bytes.get(end).filter(|byte| **byte != b'"') {
            is_escaped |= *byte == b'\\';
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        let text = self.take(end + 1);
        if is_escaped {
            serde_json::from_str::<String>(text).expect("it is valid JSON").into()
        } else {
            Value::from(&text[1..end])
        }
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
fn number(json: &str) -> Value {
    if let Ok(whole) = json.parse::<i64>() {
        return whole.into();
    }
    if let Ok(whole) = json.parse::<i128>() {
        return whole.into();
    }
    if let Ok(whole) = json.parse::<u128>() {
        return whole.into();
    }
    json.parse::<f64>().expect("it is a number of JSON").into()
}

/// An object of JSON, in the order of its text.
#[derive(Debug)]
struct Members {
    members: Box<[(Value, Value)]>,
    /// Indexes of the members, by name.
    by_name: Box<[u32]>,
}

impl Members {
    fn of(members: Vec<(Value, Value)>) -> Self {
        let count = u32::try_from(members.len())
            .expect("`data` has a limit of bytes, and variables have one of their number");
        let mut by_name: Box<[u32]> = (0..count).collect();
        by_name.sort_unstable_by_key(|index| members[*index as usize].0.as_str().unwrap_or_default());
        Self { members: members.into(), by_name }
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

    fn of_json(json: &str) -> Value {
        values(json, &BTreeMap::new())
    }

    #[test]
    fn numbers_are_exact_or_as_short_as_possible() {
        for (json, expected) in [
            ("0", "0"),
            ("-7", "-7"),
            ("-0", "0"),
            ("9007199254740993", "9007199254740993"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("170141183460469231731687303715884105728", "170141183460469231731687303715884105728"),
            ("-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"),
            ("340282366920938463463374607431768211455", "340282366920938463463374607431768211455"),
            ("340282366920938463463374607431768211456", "340282366920938500000000000000000000000.0"),
            ("10.50", "10.5"),
            ("0.1", "0.1"),
            ("1.0", "1.0"),
            ("1e2", "100.0"),
            ("123456789.123456789", "123456789.12345679"),
            ("1e-7", "0.0000001"),
        ] {
            let value = of_json(&format!("{{\"v\":{json}}}")).get_attr("v").unwrap();
            assert_eq!(value.to_string(), expected, "{json}");
        }
    }

    #[test]
    fn values_are_as_in_the_text() {
        let json = "{ \n\"a\" : [ 1 , \"x\\\"\\u00e9,]}\" , null , { } , [ ] , true ] , \"größe\" : { \"b\":{\"c\":2}} }";
        let expected = r#"{"a":[1,"x\"é,]}",null,{},[],true],"größe":{"b":{"c":2}}}"#;
        assert_eq!(serde_json::to_string(&of_json(json)).unwrap(), expected);
        let many: Vec<String> = (0..1000).map(|index| format!("\"n{index}\":{index}")).collect();
        let value = of_json(&format!("{{{}}}", many.join(",")));
        assert!((0..1000).all(|index| value.get_attr(&format!("n{index}")).unwrap() == Value::from(index)));
        assert!(value.get_attr("n1000").unwrap().is_undefined());
    }

    #[test]
    fn variables_are_values_beside_those_of_data() {
        let variables = [("n", Variable::Number("10.50".into())), ("t", Variable::Text("10.50".into()))]
            .map(|(name, variable)| (name.to_owned(), variable));
        let value = values(r#"{"a":1}"#, &variables.into());
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"a":1,"n":10.5,"t":"10.50"}"#);
        assert_eq!(value.get_attr("n").unwrap(), Value::from(10.5));
    }
}
