//! Why a template is not saved, or not filled.

use minijinja::{Error, ErrorKind};
use platen_shared::refusal::TemplateLimit;

/// The first error of a template's syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, with text of the template.
    pub message: String,
}

/// Why a template cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// The template does not fit its values.
    #[error("line {line}: {message}")]
    Failed {
        /// The line, from 1.
        line: usize,
        /// What is wrong, with text of the template and of its values: at most 300 characters.
        message: String,
    },
    /// The template takes more than a fill may.
    #[error("more {0} than a template may take")]
    Exceeded(TemplateLimit),
}

/// Maximum length of a message.
const MAX_MESSAGE_CHARS: usize = 300;

impl From<&Error> for SyntaxError {
    fn from(error: &Error) -> Self {
        Self { line: error.line().unwrap_or(1), message: message(error) }
    }
}

impl FillError {
    /// The reason of an error of `minijinja`, whose innermost cause names the limit, if it is one.
    pub(crate) fn of(error: &Error) -> Self {
        let mut innermost = error;
        let mut limit = limit_of(error);
        while let Some(cause) = std::error::Error::source(innermost).and_then(|cause| cause.downcast_ref()) {
            limit = limit.or(limit_of(cause));
            innermost = cause;
        }
        match limit {
            Some(limit) => Self::Exceeded(limit),
            None => Self::Failed { line: error.line().unwrap_or(1), message: message(error) },
        }
    }
}

fn limit_of(error: &Error) -> Option<TemplateLimit> {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::OutOfFuel => Some(TemplateLimit::Work),
        ErrorKind::WriteFailure => Some(TemplateLimit::Text),
        ErrorKind::InvalidOperation if detail.starts_with("recursion limit exceeded") => {
            Some(TemplateLimit::Recursion)
        }
        ErrorKind::InvalidOperation if TOO_LARGE.iter().any(|text| detail.contains(text)) => {
            Some(TemplateLimit::Work)
        }
        _ => None,
    }
}

/// Parts of details of what is refused because of its size alone.
const TOO_LARGE: [&str; 2] = ["range has too many elements", "repeated"];

/// The text for people. An undefined value is named as the template writes it.
fn message(error: &Error) -> String {
    let detail = error.detail().unwrap_or_default();
    let text = match undefined(error, detail) {
        Some(expression) => format!("\"{expression}\" is undefined"),
        None if detail.is_empty() => error.kind().to_string(),
        None => detail.to_owned(),
    };
    shortened(&text)
}

fn undefined<'e>(error: &'e Error, detail: &'e str) -> Option<&'e str> {
    let named = detail.split_once("` is undefined").and_then(|(before, _)| before.rsplit('`').next());
    if let Some(named) = named.filter(|named| !named.contains("(...)")) {
        return Some(named);
    }
    if named.is_none() && error.kind() != ErrorKind::UndefinedError {
        return None;
    }
    error.template_source().zip(error.range()).and_then(|(source, range)| source.get(range)).or(named)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_MESSAGE_CHARS - 1).chain(['…']).collect(),
    }
}
