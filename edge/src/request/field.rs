//! One field of a request: from its JSON text to a value, or to the message that names the field
//! and the rule.
//!
//! Invariant: `null` is not a value of any type. The rules' numbers come from `limits`.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::RangeInclusive};

use platen_shared::{job::InvalidJob, limits, url_rule::InvalidUrl};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Why a body is not a request. `Display` is the public message of a 400.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum InvalidRequest {
    #[error("The body is empty; it must be a JSON object")]
    EmptyBody,
    #[error("The body must be UTF-8")]
    NotUtf8,
    #[error("The body must be JSON without a byte order mark")]
    ByteOrderMark,
    #[error("The body is not valid JSON: {0}")]
    Syntax(String),
    #[error("The body must be a JSON object")]
    NotAnObject,
    #[error("Field \"{0}\" is given twice")]
    Repeated(&'static str),
    #[error("Unknown field \"{name}\"{}", .suggestion.map(|known| format!(". Did you mean \"{known}\"?")).unwrap_or_default())]
    Unknown { name: String, suggestion: Option<&'static str> },
    #[error("\"{0}\" is required")]
    Required(&'static str),
    #[error("\"html\" or \"url\" is required")]
    NoSource,
    #[error("\"{0}\" must be a string")]
    NotAString(&'static str),
    #[error("\"{0}\" must be valid Unicode text")]
    NotUnicode(&'static str),
    #[error("\"{0}\" must be true or false")]
    NotABoolean(&'static str),
    #[error("\"{name}\" must be a {kind} from {min} to {max}")]
    Number { name: &'static str, kind: &'static str, min: f64, max: f64 },
    #[error("\"{name}\" must be one of {}", quoted(.choices))]
    Choice { name: &'static str, choices: &'static [&'static str] },
    #[error("\"html\" must not be empty")]
    EmptyHtml,
    #[error("\"html\" must be at most {} bytes of UTF-8", limits::MAX_HTML_BYTES)]
    HtmlTooLarge,
    #[error("\"url\" {0}")]
    Url(InvalidUrl),
    #[error("\"fileName\" must be 1 to {} characters", limits::MAX_FILE_NAME_CHARS)]
    FileNameLength,
    #[error("\"variables\" must be an object of strings and numbers")]
    VariablesType,
    #[error("\"variables\" must hold strings and numbers only; \"{0}\" is neither")]
    VariableType(String),
    #[error("\"variables\" holds \"{0}\" twice")]
    VariableRepeated(String),
    #[error("\"variables\" must have at most {} entries", limits::MAX_VARIABLES)]
    TooManyVariables,
    #[error(
        "The image would have {pixels} pixels; at most {} are allowed. Lower \"width\", \"height\" or \"deviceScaleFactor\"",
        limits::MAX_IMAGE_PIXELS
    )]
    TooManyPixels { pixels: u64 },
    #[error("Missing template variable{} {}", if .0.len() == 1 { "" } else { "s" }, quoted(.0))]
    MissingVariables(Vec<String>),
    #[error("The filled template must be at most {} bytes of UTF-8", limits::MAX_HTML_BYTES)]
    FilledTemplateTooLarge,
    #[error("The filled template is empty")]
    EmptyTemplate,
}

impl InvalidRequest {
    /// An unknown field, with the known one it is most like, if it is like one at all.
    pub(super) fn unknown(name: &str, known: &[&'static str]) -> Self {
        // Jaro-Winkler over 0.85 catches a slip of a letter or of case and leaves "foo" alone.
        let likeness =
            |known: &str| strsim::jaro_winkler(&known.to_ascii_lowercase(), &name.to_ascii_lowercase());
        let suggestion = known
            .iter()
            .map(|known| (likeness(known), *known))
            .filter(|(likeness, _)| name.len() <= 64 && *likeness > 0.85)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, known)| known);
        Self::Unknown { name: shortened(name), suggestion }
    }
}

impl From<InvalidJob> for InvalidRequest {
    fn from(error: InvalidJob) -> Self {
        match error {
            InvalidJob::Url(problem) => Self::Url(problem),
            InvalidJob::EmptyHtml => Self::EmptyHtml,
            InvalidJob::HtmlTooLarge => Self::HtmlTooLarge,
            InvalidJob::TooManyPixels { pixels } => Self::TooManyPixels { pixels },
            InvalidJob::OutOfRange { what, min, max } => {
                Self::Number { name: what, kind: "number", min, max }
            }
        }
    }
}

/// A caller's name in a message: whole if it is short.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 64;
    if name.chars().count() <= LONGEST {
        name.to_owned()
    } else {
        name.chars().take(LONGEST).chain(['…']).collect()
    }
}

fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(|name| format!("\"{}\"", shortened(name.as_ref()))).collect::<Vec<_>>().join(", ")
}

/// A field's name and, if it was given, its JSON text.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) name: &'static str,
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
        chosen.map(Some).ok_or(InvalidRequest::Choice { name: self.name, choices })
    }

    pub(super) fn number<T>(
        self,
        range: RangeInclusive<f64>,
        make: fn(f64) -> Result<T, InvalidJob>,
    ) -> Parsed<T> {
        self.bounded("number", &range, |_| true, make)
    }

    pub(super) fn milliseconds<T>(
        self,
        range: RangeInclusive<f64>,
        make: fn(f64) -> Result<T, InvalidJob>,
    ) -> Parsed<T> {
        self.bounded("number of milliseconds", &range, |_| true, make)
    }

    pub(super) fn whole<T>(
        self,
        range: RangeInclusive<u32>,
        make: fn(f64) -> Result<T, InvalidJob>,
    ) -> Parsed<T> {
        let range = f64::from(*range.start())..=f64::from(*range.end());
        self.bounded("whole number", &range, |number| number.fract() == 0.0, make)
    }

    fn bounded<T>(
        self,
        kind: &'static str,
        range: &RangeInclusive<f64>,
        fits: fn(f64) -> bool,
        make: fn(f64) -> Result<T, InvalidJob>,
    ) -> Parsed<T> {
        let Some(value) = self.value else { return Ok(None) };
        let number = is_number(value).then(|| value.get().parse::<f64>().ok()).flatten();
        let value = number.filter(|number| fits(*number)).and_then(|number| make(number).ok());
        let refused =
            InvalidRequest::Number { name: self.name, kind, min: *range.start(), max: *range.end() };
        value.map(Some).ok_or(refused)
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
        let visited = serde_json::Deserializer::from_str(value.get()).deserialize_any(Variables);
        visited.map_err(|_| InvalidRequest::VariablesType)?.map(Some)
    }

    fn text(self, value: &'a RawValue) -> Result<Cow<'a, str>, InvalidRequest> {
        if !is_string(value) {
            return Err(InvalidRequest::NotAString(self.name));
        }
        string_of(value).ok_or(InvalidRequest::NotUnicode(self.name))
    }
}

fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The text of a JSON string, borrowed where nothing was escaped; `None` for lone surrogates.
fn string_of(value: &RawValue) -> Option<Cow<'_, str>> {
    let plain = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        serde_json::from_str(value.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(plain))
    }
}

struct Variables;

impl<'de> Visitor<'de> for Variables {
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
                string_of(value)
            } else {
                // As it was written: 10.50 stays 10.50.
                is_number(value).then(|| Cow::Borrowed(value.get()))
            };
            if variables.len() == limits::MAX_VARIABLES {
                problem = Some(InvalidRequest::TooManyVariables);
            } else if let Some(text) = text {
                let shown = shortened(&name);
                if variables.insert(name.into_owned(), text.into_owned()).is_some() {
                    problem = Some(InvalidRequest::VariableRepeated(shown));
                }
            } else if is_string(value) {
                problem = Some(InvalidRequest::NotUnicode("variables"));
            } else {
                problem = Some(InvalidRequest::VariableType(shortened(&name)));
            }
        }
        Ok(problem.map_or(Ok(variables), Err))
    }
}
