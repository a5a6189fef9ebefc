//! Every answer that is not a file: its status, its public message, and nothing about its cause.
//!
//! Invariant: the only place of the edge where HTTP statuses of errors are written. A message
//! holds text of ours and names the caller wrote, never an address, a path or a statement.

use platen_shared::{limits, refusal::Refusal};

use crate::request::InvalidRequest;

/// A request that was not answered with a file. `Display` is the public message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// No such path.
    #[error("Not found")]
    NotFound,
    /// The path exists, the method does not.
    #[error("Method not allowed")]
    MethodNotAllowed,
    /// Whatever is wrong with the key: a caller cannot tell which.
    #[error("Invalid API key")]
    InvalidKey,
    /// Not JSON by its own declaration.
    #[error("Content type must be application/json")]
    ContentType,
    /// Over the body limit.
    #[error("The body must be at most {} bytes", limits::BODY_BYTES)]
    BodyTooLarge,
    /// The body stopped in the middle.
    #[error("The body could not be read to its end")]
    BodyIncomplete,
    /// The body breaks a rule.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// No such template in this account.
    #[error("Template not found")]
    TemplateNotFound,
    /// No attempt is left this month.
    #[error("Monthly quota exhausted")]
    QuotaExhausted {
        /// Seconds until the next month begins.
        retry_after: u64,
    },
    /// The farm said no, or broke.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The farm could not be reached.
    #[error("The renderer is not available")]
    FarmUnreachable,
    /// Ours: the database, or a setting. The cause is logged, not told.
    #[error("Internal error")]
    Internal,
}

impl ApiError {
    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::NotFound | Self::TemplateNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::InvalidKey => 401,
            Self::ContentType => 415,
            Self::BodyTooLarge => 413,
            Self::BodyIncomplete | Self::Invalid(_) => 400,
            Self::QuotaExhausted { .. } => 429,
            Self::Refused(refusal) => refusal.status(),
            Self::FarmUnreachable => 503,
            Self::Internal => 500,
        }
    }

    /// Seconds for `retry-after`, where waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::QuotaExhausted { retry_after } => Some(*retry_after),
            Self::Refused(refusal) => refusal.retry_after().map(u64::from),
            // About the time a farm needs to start.
            Self::FarmUnreachable => Some(5),
            _ => None,
        }
    }

    /// Whether a claimed attempt stays claimed: only where the browser may have run.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_counted(),
            _ => false,
        }
    }

    /// The JSON body.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        serde_json::json!({ "error": self.to_string() }).to_string().into_bytes()
    }
}
