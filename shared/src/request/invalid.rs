//! The messages for invalid request bodies.

use std::fmt;

use super::{
    field_name::{FieldName, FieldPath},
    other_services,
};
use crate::{
    format::OutputFormat,
    job::InvalidOptions,
    limits,
    reason::Reason,
    text::{MAX_QUOTED_CHARS, shortened},
};

/// Jaro-Winkler similarity above which a known field is suggested. One wrong letter is above it; `foo` is
/// below it for every field.
const MIN_SUGGESTION_SIMILARITY: f64 = 0.88;

/// The rule that a request body breaks. `Display` is the public message of a 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum InvalidRequest {
    #[error("The body {0}")]
    Body(String),
    #[error("Field \"{0}\" is given twice")]
    Repeated(FieldPath),
    /// `name` is the caller's, of a member of the field `of` if there is one.
    #[error("Unknown field \"{}\"{suggestion}", member(*.of, .name))]
    Unknown { of: Option<FieldPath>, name: String, suggestion: Suggestion },
    #[error("\"{0}\" is required")]
    Required(FieldPath),
    #[error("\"html\" or \"url\" is required")]
    NoSource,
    /// The value of a field breaks a rule.
    #[error("\"{field}\" {rule}")]
    Rule { field: FieldPath, rule: String },
    #[error("\"{0}\" must not be given together with \"{1}\"")]
    Conflict(FieldName, FieldName),
    #[error("\"{0}\" is required with \"{1}\"")]
    RequiredWith(FieldName, FieldName),
    /// `value` is the JSON of the other field's value.
    #[error("\"{field}\" must not be given with \"{other}\": {value}")]
    NotWith { field: FieldName, other: FieldName, value: String },
    #[error("{error} (\"{field}\" of the template)")]
    OfTemplate { error: Box<Self>, field: FieldName },
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
    FilledHeaderTooLarge { field: FieldName },
    #[error("The filled template is empty")]
    EmptyTemplate,
}

impl InvalidRequest {
    /// The reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::OfTemplate { error, .. } => error.reason(),
            Self::Body(_) => Reason::InvalidJson,
            Self::Repeated(_) => Reason::RepeatedField,
            Self::Unknown { .. } => Reason::UnknownField,
            Self::Required(_) | Self::RequiredWith(..) | Self::NoSource => Reason::MissingField,
            Self::MissingVariables(_) => Reason::MissingTemplateVariable,
            Self::Conflict(..) | Self::NotWith { .. } => Reason::ConflictingFields,
            Self::FilledTemplateTooLarge | Self::FilledHeaderTooLarge { .. } => {
                Reason::FilledTemplateTooLarge
            }
            Self::EmptyTemplate => Reason::EmptyTemplate,
            Self::Rule { .. } | Self::TooManyPixels { .. } => Reason::InvalidField,
        }
    }

    /// The name of the field that is the cause, if there is one.
    #[must_use]
    pub fn field(&self) -> Option<String> {
        match self {
            Self::OfTemplate { error, .. } => error.field(),
            Self::Unknown { of, name, .. } => Some(member(*of, name)),
            Self::Repeated(field) | Self::Required(field) | Self::Rule { field, .. } => {
                Some(field.to_string())
            }
            Self::Conflict(field, _)
            | Self::RequiredWith(field, _)
            | Self::NotWith { field, .. }
            | Self::FilledHeaderTooLarge { field }
            | Self::TooManyPixels { field, .. } => Some(field.to_string()),
            Self::NoSource => Some(FieldName::Html.to_string()),
            Self::MissingVariables(_) => Some(FieldName::Variables.to_string()),
            Self::Body(_) | Self::FilledTemplateTooLarge | Self::EmptyTemplate => None,
        }
    }

    /// The same as [`field`](Self::field), with an ellipsis in place of a name that is the caller's text.
    #[must_use]
    pub fn known_field(&self) -> Option<String> {
        match self {
            Self::OfTemplate { error, .. } => error.known_field(),
            Self::Unknown { of, .. } => Some(member(*of, "…")),
            known => known.field(),
        }
    }

    /// An error that options of a template have a part in, which is one of them.
    pub(super) fn with_options_of(self, of_template: impl Fn(FieldName) -> bool) -> Self {
        let other = match &self {
            Self::Conflict(_, other) | Self::RequiredWith(_, other) | Self::NotWith { other, .. } => {
                Some(*other)
            }
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

    /// The value of a field breaks a rule.
    pub(super) fn rule(field: FieldName, rule: &str) -> Self {
        Self::Rule { field: field.into(), rule: rule.to_owned() }
    }

    /// A field that a file of this format must not have.
    pub(super) fn with_format(field: FieldName, format: OutputFormat) -> Self {
        let name = format.content_type().rsplit('/').next().unwrap_or_default();
        Self::not_with(field, FieldName::Format, &format!("\"{name}\""))
    }

    pub(super) fn not_with(field: FieldName, other: FieldName, value: &str) -> Self {
        Self::NotWith { field, other, value: value.to_owned() }
    }

    /// An unknown field, or an unknown member of a field.
    pub(super) fn unknown(of: Option<FieldPath>, name: &str, known: &[FieldPath]) -> Self {
        Self::Unknown { of, name: shortened(name), suggestion: Suggestion::instead_of(of, name, known) }
    }
}

/// What an unknown field may stand for. `Display` is the end of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suggestion {
    /// Nothing.
    None,
    /// The most similar known field.
    Similar(FieldPath),
    /// That of another service, with what replaces it.
    OtherService(&'static str),
}

impl Suggestion {
    fn instead_of(of: Option<FieldPath>, name: &str, known: &[FieldPath]) -> Self {
        if name.len() > MAX_QUOTED_CHARS {
            return Self::None;
        }
        if of.is_none()
            && let Some(text) = other_services::replacement(name)
        {
            return Self::OtherService(text);
        }
        let lower_case = name.to_ascii_lowercase();
        let similarity =
            |path: FieldPath| strsim::jaro_winkler(&path.last().to_ascii_lowercase(), &lower_case);
        known
            .iter()
            .map(|field| (similarity(*field), *field))
            .filter(|(similarity, _)| *similarity > MIN_SUGGESTION_SIMILARITY)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map_or(Self::None, |(_, field)| Self::Similar(field))
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Similar(field) => write!(f, ". Did you mean \"{field}\"?"),
            Self::OtherService(text) => write!(f, ". {text}"),
        }
    }
}

impl From<InvalidOptions> for InvalidRequest {
    fn from(error: InvalidOptions) -> Self {
        use FieldName::{Attachments, InvoiceXml, PdfStandard, Protection};
        let rule = |field: FieldName, index, member| Self::Rule {
            field: FieldPath { field, index, member },
            rule: error.to_string(),
        };
        match error {
            InvalidOptions::TooManyPixels { pixels, is_clip } => Self::TooManyPixels {
                pixels,
                field: if is_clip { FieldName::Clip } else { FieldName::Width },
            },
            InvalidOptions::NoSpaceBetweenMargins => rule(FieldName::Margin, None, None),
            InvalidOptions::TooManyAssets
            | InvalidOptions::AssetsTooLarge
            | InvalidOptions::RepeatedAsset => rule(FieldName::Assets, None, None),
            InvalidOptions::TooManyAttachments | InvalidOptions::AttachmentsTooLarge => {
                rule(Attachments, None, None)
            }
            InvalidOptions::RepeatedName { index } => rule(Attachments, Some(index), Some("name")),
            InvalidOptions::FilesInA2b => Self::not_with(Attachments, PdfStandard, "\"pdf/a-2b\""),
            InvalidOptions::InvoiceInA2b => Self::not_with(InvoiceXml, PdfStandard, "\"pdf/a-2b\""),
            InvalidOptions::NoPassword => rule(Protection, None, None),
            InvalidOptions::RepeatedPermission => rule(Protection, None, Some("allow")),
            InvalidOptions::ProtectedStandard => Self::Conflict(Protection, PdfStandard),
            InvalidOptions::ProtectedInvoice => Self::Conflict(Protection, InvoiceXml),
        }
    }
}

fn member(of: Option<FieldPath>, name: &str) -> String {
    of.map_or_else(|| name.to_owned(), |field| format!("{field}.{name}"))
}

pub(super) fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(|name| format!("\"{}\"", shortened(name.as_ref()))).collect::<Vec<_>>().join(", ")
}
