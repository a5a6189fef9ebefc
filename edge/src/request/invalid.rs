//! The messages for invalid request bodies.

use platen_shared::{limits, template::FillError, url_rule::InvalidUrl};

use super::field_name::FieldName;
use crate::endpoint::Endpoint;

/// Maximum number of characters of a caller's name in a message.
const MAX_QUOTED_CHARS: usize = 64;
/// Jaro-Winkler similarity above which a known field is suggested. One wrong letter is above it; `foo` is
/// below it for every field.
const MIN_SUGGESTION_SIMILARITY: f64 = 0.85;

/// The rule that a request body breaks. `Display` is the public message of a 400.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
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
    Repeated(FieldName),
    #[error("Unknown field \"{name}\"{}", .suggestion.map(|field| format!(". Did you mean \"{field}\"?")).unwrap_or_default())]
    Unknown { name: String, suggestion: Option<FieldName> },
    #[error("\"{0}\" is required")]
    Required(FieldName),
    #[error("\"html\" or \"url\" is required")]
    NoSource,
    #[error("\"{0}\" must be a string")]
    NotAString(FieldName),
    #[error("\"{0}\" must be valid Unicode text")]
    NotUnicode(FieldName),
    #[error("\"{0}\" must be true or false")]
    NotABoolean(FieldName),
    #[error("\"{field}\" must be a {kind} from {min} to {max}")]
    Number { field: FieldName, kind: &'static str, min: f64, max: f64 },
    #[error("\"{field}\" must be one of {}", quoted(.choices))]
    Choice { field: FieldName, choices: &'static [&'static str] },
    #[error("\"html\" must not be empty")]
    EmptyHtml,
    #[error("\"html\" must be at most {} bytes of UTF-8", limits::MAX_HTML_BYTES)]
    HtmlTooLarge,
    #[error("\"url\" {0}")]
    Url(#[from] InvalidUrl),
    #[error("\"fileName\" must be 1 to {} characters", limits::MAX_FILE_NAME_CHARS)]
    FileNameLength,
    #[error("\"variables\" must be an object of strings and numbers")]
    VariablesType,
    #[error("\"variables\" must hold strings and numbers only; \"{}\" is neither", shortened(.0))]
    VariableType(String),
    #[error("\"variables\" holds \"{}\" twice", shortened(.0))]
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
    /// The name in log lines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyBody | Self::NotUtf8 | Self::ByteOrderMark | Self::Syntax(_) | Self::NotAnObject => {
                "invalid_json"
            }
            Self::Repeated(_) => "repeated_field",
            Self::Unknown { .. } => "unknown_field",
            Self::Required(_) | Self::NoSource => "missing_field",
            Self::MissingVariables(_) => "missing_template_variable",
            Self::FilledTemplateTooLarge => "filled_template_too_large",
            Self::EmptyTemplate => "empty_template",
            _ => "invalid_field",
        }
    }

    /// An unknown field, with the most similar known one as a suggestion.
    pub(super) fn unknown(name: &str, endpoint: Endpoint) -> Self {
        let lower_case = name.to_ascii_lowercase();
        let similarity =
            |field: FieldName| strsim::jaro_winkler(&field.as_str().to_ascii_lowercase(), &lower_case);
        let suggestion = FieldName::of_endpoint(endpoint)
            .filter(|_| name.len() <= MAX_QUOTED_CHARS)
            .map(|field| (similarity(field), field))
            .filter(|(similarity, _)| *similarity > MIN_SUGGESTION_SIMILARITY)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, field)| field);
        Self::Unknown { name: shortened(name), suggestion }
    }
}

impl From<FillError> for InvalidRequest {
    fn from(error: FillError) -> Self {
        match error {
            FillError::Missing(names) => Self::MissingVariables(names),
            FillError::TooLarge => Self::FilledTemplateTooLarge,
        }
    }
}

/// A caller's name for a message; a long one ends with an ellipsis.
fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_QUOTED_CHARS {
        name.to_owned()
    } else {
        name.chars().take(MAX_QUOTED_CHARS).chain(['…']).collect()
    }
}

fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(|name| format!("\"{}\"", shortened(name.as_ref()))).collect::<Vec<_>>().join(", ")
}
