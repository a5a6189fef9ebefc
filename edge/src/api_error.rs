//! Every answer that is not a file: its status, its public message, and nothing about its cause.
//!
//! Invariant: the only place of the edge where HTTP statuses of errors are written; those of attempts
//! that failed come from the classes of `platen_shared::failure`. A message holds text of ours and names
//! the caller wrote, never an address, a path or a statement.

use platen_shared::{
    failure::FailureClass,
    limits,
    refusal::{RETRY_AFTER_SECONDS, Refusal},
};

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
    #[error("The body must be at most {} bytes", limits::MAX_BODY_BYTES)]
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
    /// The farm refused the job, or broke.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The farm could not be reached, or a proxy in front of it says so.
    #[error("The renderer is not available")]
    FarmUnreachable,
    /// Ours: the database, a setting, a damaged template. The cause is logged, never sent.
    #[error("Internal error")]
    Internal,
}

/// How a request ends that is not answered with a file.
enum Outcome {
    /// Refused with this status before an attempt is recorded.
    Rejected(u16),
    /// An attempt that failed, or would have.
    Failed(FailureClass),
}

impl ApiError {
    fn outcome(&self) -> Outcome {
        match self {
            Self::NotFound | Self::TemplateNotFound => Outcome::Rejected(404),
            Self::MethodNotAllowed => Outcome::Rejected(405),
            Self::InvalidKey => Outcome::Rejected(401),
            Self::ContentType => Outcome::Rejected(415),
            Self::BodyTooLarge => Outcome::Rejected(413),
            Self::BodyIncomplete | Self::Invalid(_) => Outcome::Rejected(400),
            Self::QuotaExhausted { .. } => Outcome::Rejected(429),
            Self::Refused(refusal) => Outcome::Failed(refusal.class()),
            Self::FarmUnreachable => Outcome::Failed(FailureClass::RendererUnavailable),
            Self::Internal => Outcome::Failed(FailureClass::Internal),
        }
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.outcome() {
            Outcome::Rejected(status) => status,
            Outcome::Failed(class) => class.status(),
        }
    }

    /// Seconds for `retry-after`, where waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::QuotaExhausted { retry_after } => Some(*retry_after),
            Self::Refused(refusal) => refusal.retry_after().map(u64::from),
            Self::FarmUnreachable => Some(RETRY_AFTER_SECONDS.into()),
            _ => None,
        }
    }

    /// Whether a recorded attempt counts against the quota; if not, it is refunded.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        match self.outcome() {
            Outcome::Rejected(_) => false,
            Outcome::Failed(class) => class.is_counted(),
        }
    }

    /// The JSON body.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        serde_json::json!({ "error": self.to_string() }).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, counted, seconds to wait: one row for each error; those of refusals are the shared table's.
    #[test]
    fn each_error_has_its_row() {
        let invalid = || crate::request::InvalidRequest::MissingVariables(vec!["a".to_owned()]);
        for (error, status, counted, retry_after) in [
            (ApiError::NotFound, 404, false, None),
            (ApiError::TemplateNotFound, 404, false, None),
            (ApiError::MethodNotAllowed, 405, false, None),
            (ApiError::InvalidKey, 401, false, None),
            (ApiError::ContentType, 415, false, None),
            (ApiError::BodyTooLarge, 413, false, None),
            (ApiError::BodyIncomplete, 400, false, None),
            (ApiError::Invalid(invalid()), 400, false, None),
            (ApiError::QuotaExhausted { retry_after: 60 }, 429, false, Some(60)),
            (ApiError::FarmUnreachable, 503, false, Some(5)),
            (ApiError::Internal, 500, false, None),
            (Refusal::QueueFull { retry_after: 7 }.into(), 503, false, Some(7)),
            (Refusal::NameServerFailed.into(), 503, false, Some(5)),
            (Refusal::Deadline.into(), 504, true, None),
            (Refusal::Broken.into(), 502, true, None),
            (Refusal::PageTooLarge.into(), 422, true, None),
            (Refusal::Cancelled { page_ran: true }.into(), 499, true, None),
            (Refusal::Cancelled { page_ran: false }.into(), 499, false, None),
        ] {
            let row = (error.status(), error.is_counted(), error.retry_after());
            assert_eq!(row, (status, counted, retry_after), "{error}");
        }
    }
}
