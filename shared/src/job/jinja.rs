//! A template in Jinja with its values, which the farm fills.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
    ser::Error as _,
};
use serde_json::value::RawValue;

use super::Html;
use crate::{limits, text::shortened};

/// A template in Jinja, and its values. The header and the footer of its job are templates in Jinja with the same values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JinjaTemplate {
    /// The template.
    pub markup: Html,
    /// Values by name.
    #[serde(default)]
    pub data: TemplateData,
    /// Further values by name. None has a name that a member of `data` has.
    #[serde(default)]
    pub variables: BTreeMap<String, Variable>,
}

/// An object of JSON with values of a template, as its sender spells it. No object in it has a name twice.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct TemplateData(Box<RawValue>);

/// The rule that a JSON text breaks. `Display` continues after the name of its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum InvalidData {
    #[error("must be an object")]
    NoObject,
    #[error("must be at most {} bytes of JSON text", limits::MAX_DATA_BYTES)]
    TooLarge,
    #[error("must have at most {} levels of objects and arrays", limits::MAX_DATA_LEVELS)]
    TooDeep,
    #[error("holds \"{}\" twice in one object", shortened(.0))]
    Repeated(String),
    #[error("must have valid Unicode text, and numbers up to 1.7e308")]
    Unreadable,
}

impl TemplateData {
    /// The JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.0.get()
    }
}

impl TryFrom<&RawValue> for TemplateData {
    type Error = InvalidData;

    fn try_from(json: &RawValue) -> Result<Self, InvalidData> {
        if !json.get().starts_with('{') {
            return Err(InvalidData::NoObject);
        }
        if json.get().len() > limits::MAX_DATA_BYTES {
            return Err(InvalidData::TooLarge);
        }
        let mut broken = None;
        let check = Check { level: 1, broken: &mut broken };
        match check.deserialize(&mut serde_json::Deserializer::from_str(json.get())) {
            Ok(()) => Ok(Self(json.to_owned())),
            Err(_) => Err(broken.unwrap_or(InvalidData::Unreadable)),
        }
    }
}

impl Default for TemplateData {
    fn default() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_default())
    }
}

impl PartialEq for TemplateData {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Eq for TemplateData {}

impl fmt::Debug for TemplateData {
    /// Shows the size only, because content of the caller must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TemplateData({} bytes)", self.as_json().len())
    }
}

impl<'de> Deserialize<'de> for TemplateData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(&*Box::<RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Reads a value at a level, and keeps the rule that it breaks.
struct Check<'b> {
    level: usize,
    broken: &'b mut Option<InvalidData>,
}

impl Check<'_> {
    fn nested<E: serde::de::Error>(&mut self) -> Result<Check<'_>, E> {
        if self.level > limits::MAX_DATA_LEVELS {
            return Err(self.error(InvalidData::TooDeep));
        }
        Ok(Check { level: self.level + 1, broken: &mut *self.broken })
    }

    fn error<E: serde::de::Error>(&mut self, rule: InvalidData) -> E {
        let error = E::custom(&rule);
        *self.broken = Some(rule);
        error
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        /// Most names are borrowed: an object can have a million of them.
        #[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        struct Name<'n>(#[serde(borrow)] Cow<'n, str>);

        let mut names: Vec<Name<'de>> = Vec::new();
        self.nested::<A::Error>()?;
        while let Some(name) = map.next_key()? {
            names.push(name);
            map.next_value_seed(self.nested()?)?;
        }
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(self.error(InvalidData::Repeated(pair[0].0.clone().into_owned()))),
            None => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<(), A::Error> {
        self.nested::<A::Error>()?;
        while array.next_element_seed(self.nested()?)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// The value of a variable of a template. In JSON it is a string or a number.
#[derive(Clone, PartialEq, Eq)]
pub enum Variable {
    /// A text.
    Text(String),
    /// A number, as JSON spells it.
    Number(String),
}

impl Variable {
    /// Whether this is a number that a template in Jinja cannot have, because it is beyond the range of a double.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        let Self::Number(json) = self else { return false };
        !json.parse::<f64>().is_ok_and(f64::is_finite)
    }

    /// The value as placeholders print it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let (Self::Text(text) | Self::Number(text)) = self;
        text
    }
}

impl fmt::Debug for Variable {
    /// Shows the kind only, because content of the caller must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Text(_)) { "Text" } else { "Number" })
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(json) => {
                RawValue::from_string(json.clone()).map_err(S::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        match json.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(json.get()).map(Self::Text).map_err(D::Error::custom),
            Some(b'-' | b'0'..=b'9') => Ok(Self::Number(json.get().to_owned())),
            _ => Err(D::Error::custom("a value is a string or a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(json: &str) -> Result<TemplateData, InvalidData> {
        TemplateData::try_from(serde_json::from_str::<&RawValue>(json).unwrap())
    }

    #[test]
    fn data_is_kept_as_it_is_spelled() {
        let json = "{ \"a\": 10.50, \"größe\": [1e2, null, true, \"\\u00e9\\\"\", {}],\n\"b\": {\"a\": -0}}";
        let template = JinjaTemplate {
            markup: Html::try_from("x".to_owned()).unwrap(),
            data: data(json).unwrap(),
            variables: [("n", Variable::Number("10.50".into())), ("t", Variable::Text("10.50".into()))]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        };
        let sent = serde_json::to_string(&template).unwrap();
        assert_eq!(sent, format!(r#"{{"markup":"x","data":{json},"variables":{{"n":10.50,"t":"10.50"}}}}"#));
        assert_eq!(serde_json::from_str::<JinjaTemplate>(&sent).unwrap(), template);
        assert!(!format!("{template:?}").contains("10.5"));
    }

    #[test]
    fn other_data_is_refused() {
        for no_object in ["null", "[]", "1", "\"{}\"", "true"] {
            assert_eq!(data(no_object), Err(InvalidData::NoObject), "{no_object}");
        }
        let nested = |levels: usize| format!("{}1{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2));
        assert!(data(&nested(limits::MAX_DATA_LEVELS)).is_ok());
        assert_eq!(data(&nested(limits::MAX_DATA_LEVELS + 2)), Err(InvalidData::TooDeep));
        assert_eq!(data(&nested(1_000_000)), Err(InvalidData::TooDeep));
        let one_more = format!("{{\"b\":{}}}", nested(limits::MAX_DATA_LEVELS));
        assert_eq!(data(&one_more), Err(InvalidData::TooDeep));
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(data(&sized(limits::MAX_DATA_BYTES)).is_ok());
        assert_eq!(data(&sized(limits::MAX_DATA_BYTES + 1)), Err(InvalidData::TooLarge));
        for unreadable in [r#"{"a":"\ud800"}"#, r#"{"\ud800":1}"#, r#"{"a":[1e309]}"#] {
            assert_eq!(data(unreadable), Err(InvalidData::Unreadable), "{unreadable}");
        }
        for repeated in [r#"{"a":1,"b":2,"\u0061":3}"#, r#"{"x":[{"a":{"a":1},"a":2}]}"#] {
            assert_eq!(data(repeated), Err(InvalidData::Repeated("a".into())), "{repeated}");
        }
        let in_a_job = r#"{"markup":"x","data":{"a":1,"a":2}}"#;
        assert!(serde_json::from_str::<JinjaTemplate>(in_a_job).is_err());
    }

    #[test]
    fn a_variable_is_a_text_or_a_number() {
        for other in ["null", "true", "[]", "{}", r#""\ud800""#] {
            assert!(serde_json::from_str::<Variable>(other).is_err(), "{other}");
        }
    }
}
