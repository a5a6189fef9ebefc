//! The messages for invalid request bodies.

use crate::{
    format::OutputFormat,
    job::{InvalidDocument, InvalidOptions, Output, Region},
    limits,
    reason::Reason,
    url_rule::InvalidUrl,
};

use super::field_name::{FieldName, FieldPath};

/// Maximum number of characters of a caller's name in a message.
const MAX_QUOTED_CHARS: usize = 64;
/// Jaro-Winkler similarity above which a known field is suggested. One wrong letter is above it; `foo` is
/// below it for every field.
const MIN_SUGGESTION_SIMILARITY: f64 = 0.88;

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
    Repeated(FieldPath),
    #[error("Unknown field \"{name}\"{}", .suggestion.map(|field| format!(". Did you mean \"{field}\"?")).unwrap_or_default())]
    Unknown { name: String, suggestion: Option<FieldPath> },
    #[error("\"{0}\" is required")]
    Required(FieldPath),
    #[error("\"html\" or \"url\" is required")]
    NoSource,
    #[error("\"{0}\" must be a string")]
    NotAString(FieldPath),
    #[error("\"{0}\" must be valid Unicode text")]
    NotUnicode(FieldPath),
    #[error("\"{0}\" must be true or false")]
    NotABoolean(FieldPath),
    #[error("\"{field}\" must be a {kind} from {min} to {max}")]
    Number { field: FieldPath, kind: &'static str, min: f64, max: f64 },
    #[error("\"{field}\" must be one of {}", quoted(.choices))]
    Choice { field: FieldPath, choices: &'static [&'static str] },
    #[error(
        "\"{0}\" must be a length: a number of CSS pixels from 0, or text such as \"12mm\" in px, in, cm, mm or pt"
    )]
    Length(FieldPath),
    #[error("\"{field}\" must be from {min}mm to {max}mm")]
    LengthRange { field: FieldPath, min: f64, max: f64 },
    #[error(
        "\"margin\" must be a length such as \"12mm\", or an object of lengths: \"top\", \"right\", \"bottom\", \"left\""
    )]
    Margin,
    #[error("\"margin\" leaves no space for the page")]
    NoSpaceBetweenMargins,
    #[error("\"clip\" must be an object of numbers: \"x\", \"y\", \"width\", \"height\"")]
    Clip,
    #[error("\"{field}\" {rule}")]
    Rule { field: FieldPath, rule: String },
    #[error("\"{0}\" must not be given together with \"{1}\"")]
    Conflict(FieldPath, FieldPath),
    #[error("\"{0}\" is required with \"{1}\"")]
    RequiredWith(FieldPath, FieldPath),
    /// `value` is the JSON of the other field's value.
    #[error("\"{field}\" must not be given with \"{other}\": {value}")]
    NotWith { field: FieldPath, other: FieldName, value: String },
    #[error("{error} (\"{field}\" of the template)")]
    OfTemplate { error: Box<Self>, field: FieldName },
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
    #[error("\"variables\" must hold strings and numbers only; \"{}\" is neither", shortened(.0))]
    VariableType(String),
    #[error("\"variables\" holds \"{}\" twice", shortened(.0))]
    VariableRepeated(String),
    #[error("\"variables\" must have at most {} entries", limits::MAX_VARIABLES)]
    TooManyVariables,
    #[error(
        "The image would have {pixels} pixels; at most {} are allowed. Lower {} or \"deviceScaleFactor\"",
        limits::MAX_IMAGE_PIXELS,
        if *.field == FieldName::Clip { "the size of \"clip\"" } else { "\"width\", \"height\"" }
    )]
    TooManyPixels { pixels: u64, field: FieldName },
    #[error("Missing template variable{} {}", if .0.len() == 1 { "" } else { "s" }, quoted(.0))]
    MissingVariables(Vec<String>),
    #[error("The filled template must be at most {} bytes of UTF-8", limits::MAX_HTML_BYTES)]
    FilledTemplateTooLarge,
    #[error("\"{field}\" must be at most {} bytes of UTF-8 when it is filled", limits::MAX_HEADER_BYTES)]
    FilledHeaderTooLarge { field: FieldPath },
    #[error("The filled template is empty")]
    EmptyTemplate,
}

impl InvalidRequest {
    /// The reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::OfTemplate { error, .. } => error.reason(),
            Self::EmptyBody | Self::NotUtf8 | Self::ByteOrderMark | Self::Syntax(_) | Self::NotAnObject => {
                Reason::InvalidJson
            }
            Self::Repeated(_) => Reason::RepeatedField,
            Self::Unknown { .. } => Reason::UnknownField,
            Self::Required(_) | Self::RequiredWith(..) | Self::NoSource => Reason::MissingField,
            Self::MissingVariables(_) => Reason::MissingTemplateVariable,
            Self::Conflict(..) | Self::NotWith { .. } => Reason::ConflictingFields,
            Self::FilledTemplateTooLarge | Self::FilledHeaderTooLarge { .. } => {
                Reason::FilledTemplateTooLarge
            }
            Self::EmptyTemplate => Reason::EmptyTemplate,
            _ => Reason::InvalidField,
        }
    }

    /// The name of the field that is the cause, if there is one.
    #[must_use]
    pub fn field(&self) -> Option<String> {
        use FieldName::{Clip, FileName, Html, Margin, Url, Variables};
        let field = match self {
            Self::OfTemplate { error, .. } => return error.field(),
            Self::Unknown { name, .. } => return Some(name.clone()),
            Self::Repeated(field)
            | Self::Required(field)
            | Self::NotAString(field)
            | Self::NotUnicode(field)
            | Self::NotABoolean(field)
            | Self::Number { field, .. }
            | Self::Choice { field, .. }
            | Self::Length(field)
            | Self::LengthRange { field, .. }
            | Self::Rule { field, .. }
            | Self::Conflict(field, _)
            | Self::RequiredWith(field, _)
            | Self::NotWith { field, .. }
            | Self::FilledHeaderTooLarge { field } => return Some(field.to_string()),
            Self::EmptyHtml | Self::HtmlTooLarge | Self::NoSource => Html,
            Self::Url(_) => Url,
            Self::FileNameLength => FileName,
            Self::VariablesType
            | Self::VariableType(_)
            | Self::VariableRepeated(_)
            | Self::TooManyVariables
            | Self::MissingVariables(_) => Variables,
            Self::Margin | Self::NoSpaceBetweenMargins => Margin,
            Self::TooManyPixels { field, .. } => *field,
            Self::Clip => Clip,
            Self::EmptyBody
            | Self::NotUtf8
            | Self::ByteOrderMark
            | Self::Syntax(_)
            | Self::NotAnObject
            | Self::FilledTemplateTooLarge
            | Self::EmptyTemplate => return None,
        };
        Some(field.to_string())
    }

    /// An error that options of a template have a part in, which is one of them.
    pub(super) fn with_options_of(self, of_template: impl Fn(FieldName) -> bool) -> Self {
        let other = match &self {
            Self::Conflict(_, other) | Self::RequiredWith(_, other) => Some(other.field),
            Self::NotWith { other, .. } => Some(*other),
            _ => None,
        };
        let named = self.field();
        let is_named =
            |field: &FieldName| named.as_ref().is_some_and(|it| it.split('.').next() == Some(field.as_str()));
        match FieldName::all().find(is_named).into_iter().chain(other).find(|field| of_template(*field)) {
            Some(field) => Self::OfTemplate { error: Box::new(self), field },
            None => self,
        }
    }

    /// A field that a file of this format must not have.
    pub(super) fn with_format(field: FieldName, format: OutputFormat) -> Self {
        let name = format.content_type().rsplit('/').next().unwrap_or_default();
        Self::not_with(field, FieldName::Format, &format!("\"{name}\""))
    }

    pub(super) fn not_with(field: FieldName, other: FieldName, value: &str) -> Self {
        Self::NotWith { field: field.into(), other, value: value.to_owned() }
    }

    /// A rule on several options that the request breaks.
    pub(super) fn options(error: InvalidOptions, output: &Output) -> Self {
        match error {
            InvalidOptions::TooManyPixels { pixels } => {
                let is_clip =
                    matches!(output, Output::Image(image) if matches!(image.region, Region::Clip(_)));
                Self::TooManyPixels {
                    pixels,
                    field: if is_clip { FieldName::Clip } else { FieldName::Width },
                }
            }
            InvalidOptions::NoSpaceBetweenMargins => Self::NoSpaceBetweenMargins,
            InvalidOptions::Document(error) => Self::document(error),
        }
    }

    /// A rule on what a PDF has beyond its pages.
    pub(super) fn document(error: InvalidDocument) -> Self {
        use FieldName::{Attachments, InvoiceXml, PdfStandard, Protection};
        let rule = |field| Self::Rule { field, rule: error.to_string() };
        match error {
            InvalidDocument::TooManyAttachments | InvalidDocument::AttachmentsTooLarge => {
                rule(Attachments.into())
            }
            InvalidDocument::RepeatedName { index } => {
                rule(FieldPath { field: Attachments, index: Some(index), member: Some("name") })
            }
            InvalidDocument::FilesInA2b => Self::not_with(Attachments, PdfStandard, "\"pdf/a-2b\""),
            InvalidDocument::InvoiceInA2b => Self::not_with(InvoiceXml, PdfStandard, "\"pdf/a-2b\""),
            InvalidDocument::NoPassword => rule(Protection.into()),
            InvalidDocument::RepeatedPermission => {
                rule(FieldPath { field: Protection, index: None, member: Some("allow") })
            }
            InvalidDocument::ProtectedStandard => Self::Conflict(Protection.into(), PdfStandard.into()),
            InvalidDocument::ProtectedInvoice => Self::Conflict(Protection.into(), InvoiceXml.into()),
        }
    }

    /// An unknown field, or an unknown member of a field, with the most similar known one as a suggestion.
    pub(super) fn unknown(
        of: Option<FieldPath>,
        name: &str,
        known: impl IntoIterator<Item = FieldPath>,
    ) -> Self {
        let lower_case = name.to_ascii_lowercase();
        let similarity =
            |path: FieldPath| strsim::jaro_winkler(&path.last().to_ascii_lowercase(), &lower_case);
        let suggestion = known
            .into_iter()
            .filter(|_| name.len() <= MAX_QUOTED_CHARS)
            .map(|field| (similarity(field), field))
            .filter(|(similarity, _)| *similarity > MIN_SUGGESTION_SIMILARITY)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, field)| field);
        let name = shortened(name);
        Self::Unknown { name: of.map_or_else(|| name.clone(), |field| format!("{field}.{name}")), suggestion }
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
