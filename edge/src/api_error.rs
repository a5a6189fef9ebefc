//! The public errors: status and message, without the cause.
//!
//! Invariant: the edge defines HTTP statuses of errors only here; those of failed attempts come from
//! `platen_shared::failure`. A message contains fixed text and names from the request, never an address, a
//! file path or an SQL statement.

use platen_shared::{
    failure::FailureClass,
    limits,
    refusal::{RETRY_AFTER_SECONDS, Refusal},
};

use crate::request::InvalidRequest;

/// An error response. `Display` is the public message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// The path does not exist.
    #[error("Not found")]
    NotFound,
    /// The path does not accept the method.
    #[error("Method not allowed")]
    MethodNotAllowed,
    /// The key is missing, malformed, unknown or disabled. Callers do not learn which.
    #[error("Invalid API key")]
    InvalidKey,
    /// The content type is not JSON.
    #[error("Content type must be application/json")]
    ContentType,
    /// The body is larger than [`limits::MAX_BODY_BYTES`].
    #[error("The body must be at most {} bytes", limits::MAX_BODY_BYTES)]
    BodyTooLarge,
    /// The connection broke before the end of the body.
    #[error("The body could not be read to its end")]
    BodyIncomplete,
    /// The body breaks a rule of the contract.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The account has no such template.
    #[error("Template not found")]
    TemplateNotFound,
    /// All attempts of this month are used.
    #[error("Monthly quota exhausted")]
    QuotaExhausted {
        /// Seconds until the next month begins.
        retry_after: u64,
    },
    /// The farm refused the job, or failed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The farm, or the farm behind a proxy, could not be reached.
    #[error("The renderer is not available")]
    FarmUnreachable,
    /// The database is busy or cannot be reached. No attempt was recorded.
    #[error("The service is busy, try again shortly")]
    DatabaseUnavailable,
    /// The database, a setting or a stored template. The cause is logged and never sent.
    #[error("Internal error")]
    Internal,
}

/// Where a request failed.
enum Outcome {
    /// Before an attempt was recorded; answered with this status.
    Rejected(u16),
    /// After an attempt was recorded, or while the service could not record one.
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
            Self::DatabaseUnavailable => Outcome::Rejected(503),
            Self::Refused(refusal) => Outcome::Failed(refusal.class()),
            Self::FarmUnreachable => Outcome::Failed(FailureClass::RendererUnavailable),
            Self::Internal => Outcome::Failed(FailureClass::Internal),
        }
    }

    /// The HTTP status of the response.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.outcome() {
            Outcome::Rejected(status) => status,
            Outcome::Failed(class) => class.status(),
        }
    }

    /// Seconds for the `retry-after` header; `None` where a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::QuotaExhausted { retry_after } => Some(*retry_after),
            Self::Refused(refusal) => refusal.retry_after().map(u64::from),
            Self::FarmUnreachable | Self::DatabaseUnavailable => Some(RETRY_AFTER_SECONDS.into()),
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

    /// The body of the response: a JSON object with one member, `error`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        serde_json::json!({ "error": self.to_string() }).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row for each error: status, counted, `retry-after`. `platen_shared::refusal` has those of refusals.
    #[test]
    fn each_error_has_the_expected_status_and_count() {
        let invalid = || InvalidRequest::MissingVariables(vec!["a".to_owned()]);
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
            (ApiError::DatabaseUnavailable, 503, false, Some(5)),
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
