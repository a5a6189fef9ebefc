//! The public errors: status and message, without the cause.
//!
//! Invariant: status, code and count of an error are those of its reason (`platen_shared::reason`). A message contains fixed text and names from the request, never an address, a
//! file path or an SQL statement.

use platen_shared::{
    limits,
    reason::Reason,
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

impl ApiError {
    /// The reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotFound => Reason::NotFound,
            Self::MethodNotAllowed { .. } => Reason::MethodNotAllowed,
            Self::InvalidKey => Reason::InvalidKey,
            Self::ContentType => Reason::UnsupportedContentType,
            Self::ContentEncoding => Reason::UnsupportedContentEncoding,
            Self::BodyTooLarge => Reason::BodyTooLarge,
            Self::BodyIncomplete => Reason::BodyIncomplete,
            Self::TemplateNotFound => Reason::TemplateNotFound,
            Self::QuotaExhausted { .. } => Reason::QuotaExhausted,
            Self::RateLimitExceeded { .. } => Reason::RateLimitExceeded,
            Self::ConcurrencyLimitExceeded { .. } => Reason::ConcurrencyLimitExceeded,
            Self::FarmUnreachable => Reason::FarmUnreachable,
            Self::DatabaseUnavailable => Reason::DatabaseUnavailable,
            Self::Internal => Reason::Internal,
            Self::Invalid(invalid) => invalid.reason(),
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    /// Whether a recorded attempt counts against the quota; if not, it is refunded.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_counted(),
            error => error.reason().is_counted(),
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
        body.extend(self.reason().error_code().map(|code| ("code".to_owned(), code.as_str().into())));
        body.extend(self.field().map(|field| ("field".to_owned(), field.into())));
        Value::Object(body).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
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
            let reason = error.reason();
            let row = (reason.code(), reason.status(), error.is_counted(), error.retry_after());
            assert_eq!(row, (code, status, counted, retry_after), "{error}");
        }
    }
}
