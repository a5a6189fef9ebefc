//! The public errors: status and message, without the cause.
//!
//! Invariant: the edge defines HTTP statuses of errors only here; those of failed attempts come from
//! `platen_shared::failure`. A message contains fixed text and names from the request, never an address, a
//! file path or an SQL statement.

use platen_shared::{
    error_code::ErrorCode,
    failure::FailureClass,
    limits,
    refusal::{RETRY_AFTER_SECONDS, Refusal},
    request::InvalidRequest,
};
use serde_json::{Map, Value};

/// An error response. `Display` is the public message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// The path does not exist.
    #[error("Not found")]
    NotFound,
    /// The path does not accept the method.
    #[error("Method not allowed")]
    #[expect(missing_docs, reason = "the methods, as in `Allow`")]
    MethodNotAllowed { allowed: &'static str },
    /// The key is missing, malformed, unknown or disabled. Callers do not learn which.
    #[error("Invalid API key")]
    InvalidKey,
    /// The content type is not JSON.
    #[error("Content type must be application/json")]
    ContentType,
    /// The body is compressed.
    #[error("The body must not be encoded; content-encoding must be identity or absent")]
    ContentEncoding,
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
    /// The account has sent as many requests in this minute as it may.
    #[error("Limit of requests per minute exceeded")]
    RateLimitExceeded {
        /// Seconds until the minute ends.
        retry_after: u64,
    },
    /// As many attempts of the account run as may run at once.
    #[error("Limit of concurrent requests exceeded")]
    ConcurrencyLimitExceeded {
        /// Seconds.
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
            Self::MethodNotAllowed { .. } => Outcome::Rejected(405),
            Self::InvalidKey => Outcome::Rejected(401),
            Self::ContentType | Self::ContentEncoding => Outcome::Rejected(415),
            Self::BodyTooLarge => Outcome::Rejected(413),
            Self::BodyIncomplete | Self::Invalid(_) => Outcome::Rejected(400),
            Self::QuotaExhausted { .. }
            | Self::RateLimitExceeded { .. }
            | Self::ConcurrencyLimitExceeded { .. } => Outcome::Rejected(429),
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

    /// The name in log lines and in the table of attempts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::InvalidKey => "invalid_key",
            Self::ContentType => "unsupported_content_type",
            Self::ContentEncoding => "unsupported_content_encoding",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyIncomplete => "body_incomplete",
            Self::Invalid(invalid) => invalid.code(),
            Self::TemplateNotFound => "template_not_found",
            Self::QuotaExhausted { .. } => "quota_exhausted",
            Self::RateLimitExceeded { .. } => "rate_limit_exceeded",
            Self::ConcurrencyLimitExceeded { .. } => "concurrency_limit_exceeded",
            Self::Refused(refusal) => refusal.code(),
            Self::FarmUnreachable => "farm_unreachable",
            Self::DatabaseUnavailable => "database_unavailable",
            Self::Internal => "internal",
        }
    }

    /// Seconds for the `retry-after` header; `None` where a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::QuotaExhausted { retry_after }
            | Self::RateLimitExceeded { retry_after }
            | Self::ConcurrencyLimitExceeded { retry_after } => Some(*retry_after),
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

    /// The `code` of the response; `None` for an invalid key, whose body is fixed.
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        Some(match self {
            Self::InvalidKey => return None,
            Self::NotFound => ErrorCode::NotFound,
            Self::MethodNotAllowed { .. } => ErrorCode::MethodNotAllowed,
            Self::ContentType => ErrorCode::UnsupportedContentType,
            Self::ContentEncoding => ErrorCode::UnsupportedContentEncoding,
            Self::BodyTooLarge => ErrorCode::BodyTooLarge,
            Self::BodyIncomplete => ErrorCode::InvalidRequest,
            Self::Invalid(invalid) => invalid.error_code(),
            Self::TemplateNotFound => ErrorCode::TemplateNotFound,
            Self::QuotaExhausted { .. } => ErrorCode::QuotaExhausted,
            Self::RateLimitExceeded { .. } => ErrorCode::RateLimitExceeded,
            Self::ConcurrencyLimitExceeded { .. } => ErrorCode::ConcurrencyLimitExceeded,
            Self::Refused(refusal) => return refusal.error_code(),
            Self::FarmUnreachable => ErrorCode::RendererUnavailable,
            Self::DatabaseUnavailable => ErrorCode::ServiceBusy,
            Self::Internal => ErrorCode::InternalError,
        })
    }

    /// The name of the field for the attempt's row: a name that the API does not know is the caller's text.
    #[must_use]
    pub fn printable_field(&self) -> Option<String> {
        let printable = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
        self.field().map(|field| field.chars().map(printable).collect())
    }

    fn field(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) => invalid.field(),
            Self::TemplateNotFound => Some("templateId".to_owned()),
            Self::Refused(refusal) => refusal.field().map(str::to_owned),
            _ => None,
        }
    }

    /// The body of the response: a JSON object of `error`, `code` and, if one field is the cause, `field`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut body = Map::from_iter([("error".to_owned(), self.to_string().into())]);
        body.extend(self.error_code().map(|code| ("code".to_owned(), code.as_str().into())));
        body.extend(self.field().map(|field| ("field".to_owned(), field.into())));
        Value::Object(body).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use platen_shared::failure_text;

    use super::*;

    /// One row for each error: code, status, counted, `retry-after`. `platen_shared::refusal` has those of refusals.
    #[test]
    fn each_error_has_the_expected_code_status_and_count() {
        let invalid = || InvalidRequest::MissingVariables(vec!["a".to_owned()]);
        for (error, code, status, counted, retry_after) in [
            (ApiError::NotFound, "not_found", 404, false, None),
            (ApiError::TemplateNotFound, "template_not_found", 404, false, None),
            (ApiError::MethodNotAllowed { allowed: "POST" }, "method_not_allowed", 405, false, None),
            (ApiError::InvalidKey, "invalid_key", 401, false, None),
            (ApiError::ContentType, "unsupported_content_type", 415, false, None),
            (ApiError::ContentEncoding, "unsupported_content_encoding", 415, false, None),
            (ApiError::BodyTooLarge, "body_too_large", 413, false, None),
            (ApiError::BodyIncomplete, "body_incomplete", 400, false, None),
            (ApiError::Invalid(invalid()), "missing_template_variable", 400, false, None),
            (ApiError::Invalid(InvalidRequest::EmptyHtml), "invalid_field", 400, false, None),
            (ApiError::QuotaExhausted { retry_after: 60 }, "quota_exhausted", 429, false, Some(60)),
            (ApiError::RateLimitExceeded { retry_after: 9 }, "rate_limit_exceeded", 429, false, Some(9)),
            (
                ApiError::ConcurrencyLimitExceeded { retry_after: 1 },
                "concurrency_limit_exceeded",
                429,
                false,
                Some(1),
            ),
            (ApiError::FarmUnreachable, "farm_unreachable", 503, false, Some(5)),
            (ApiError::DatabaseUnavailable, "database_unavailable", 503, false, Some(5)),
            (ApiError::Internal, "internal", 500, false, None),
            (Refusal::QueueFull { retry_after: 7 }.into(), "queue_full", 503, false, Some(7)),
            (Refusal::NameServerFailed.into(), "name_server_failed", 503, false, Some(5)),
            (Refusal::Deadline.into(), "deadline", 504, true, None),
            (Refusal::Broken.into(), "broken", 502, true, None),
            (Refusal::PageTooLarge.into(), "page_too_large", 422, true, None),
            (Refusal::Cancelled { page_ran: true }.into(), "cancelled", 499, true, None),
            (Refusal::Cancelled { page_ran: false }.into(), "cancelled", 499, false, None),
        ] {
            let row = (error.code(), error.status(), error.is_counted(), error.retry_after());
            assert_eq!(row, (code, status, counted, retry_after), "{error}");
            let known = failure_text::find(error.code()).map(|known| known.error_code);
            let expected = (error != ApiError::InvalidKey).then(|| error.error_code());
            assert_eq!(known, expected, "the sentence for {code}");
        }
    }
}
