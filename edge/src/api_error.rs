//! The public errors: status and message, without the cause.
//!
//! Invariant: status, code and count of an error are those of its reason (`platen_shared::reason`). A message contains fixed
//! text and names from the request, never an address, a file path or an SQL statement.

use platen_shared::{
    job::RenderJob,
    limits,
    reason::Reason,
    refusal::{RETRY_AFTER_SECONDS, Refusal},
    request::InvalidRequest,
};
use serde_json::{Map, Value};

macro_rules! api_errors {
    ($($error:ident $({ $($name:ident: $type:ty),* })? ($($message:tt)*);)*) => {
        /// An error response. `Display` is the public message. Each has the [`Reason`] of its name, or of what it holds.
        ///
        /// `allowed` are the methods, as in `Allow`, and `retry_after` seconds.
        #[derive(Debug, Clone, PartialEq, thiserror::Error)]
        #[expect(missing_docs, reason = "see the sentences of `Reason`")]
        pub enum ApiError {
            $(#[error($($message)*)] $error $({ $($name: $type),* })?,)*
            /// The body breaks a rule of the contract.
            #[error(transparent)]
            Invalid(#[from] InvalidRequest),
            /// The farm refused the job, or failed. `field` is that of the request.
            #[error("{refusal}")]
            Refused { refusal: Refusal, field: Option<String> },
        }

        impl ApiError {
            /// The reason.
            #[must_use]
            pub fn reason(&self) -> Reason {
                match self {
                    $(Self::$error { .. } => Reason::$error,)*
                    Self::Invalid(invalid) => invalid.reason(),
                    Self::Refused { refusal, .. } => refusal.reason(),
                }
            }
        }
    };
}

// Name, public message.
api_errors! {
    NotFound ("Not found");
    LinkNotFound ("Link not found");
    MethodNotAllowed { allowed: &'static str } ("Method not allowed");
    // Callers do not learn which rule the key breaks.
    InvalidKey ("Invalid API key");
    UnsupportedContentType ("Content type must be application/json");
    UnsupportedContentEncoding ("The body must not be encoded; content-encoding must be identity or absent");
    BodyTooLarge ("The body must be at most {} bytes", limits::MAX_BODY_BYTES);
    BodyIncomplete ("The body could not be read to its end");
    TemplateNotFound ("Template not found");
    InvalidSignature ("The signature of the link is wrong");
    InvalidAddress ("The address of the link is not valid");
    UnknownParameter ("The template does not have one of the values");
    QuotaExhausted { retry_after: u64 } ("Monthly quota exhausted");
    // Edges may give attempts back that they have claimed ahead.
    QuotaHeld { retry_after: u64 } ("The service is busy, try again shortly");
    DailyLimitExceeded { retry_after: u64 } ("Daily limit of the link exceeded");
    RateLimitExceeded { retry_after: u64 } ("Limit of requests per minute exceeded");
    ConcurrencyLimitExceeded { retry_after: u64 } ("Limit of concurrent requests exceeded");
    FarmUnreachable ("The renderer is not available");
    // No attempt was recorded.
    DatabaseUnavailable ("The service is busy, try again shortly");
    // The database, a setting or a stored template. The cause is logged and never sent.
    Internal ("Internal error");
}

/// A failure on the way to the farm or back, of which no field is the cause.
impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal, field: None }
    }
}

impl ApiError {
    /// The refusal of a job by the farm.
    #[must_use]
    pub fn of_job(refusal: Refusal, job: &RenderJob) -> Self {
        Self::Refused { field: refusal.field(job).map(str::to_owned), refusal }
    }

    /// Whether a recorded attempt counts against the quota; if not, it is refunded.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Refused { refusal, .. } => refusal.is_counted(),
            error => error.reason().is_counted(),
        }
    }

    /// Seconds for the `retry-after` header; `None` where a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::QuotaExhausted { retry_after }
            | Self::QuotaHeld { retry_after }
            | Self::DailyLimitExceeded { retry_after }
            | Self::RateLimitExceeded { retry_after }
            | Self::ConcurrencyLimitExceeded { retry_after } => Some(*retry_after),
            Self::Refused { refusal, .. } => refusal.retry_after().map(u64::from),
            error => (error.reason().status() == 503).then_some(RETRY_AFTER_SECONDS.into()),
        }
    }

    /// The name of the field for the attempt's row, without text of the caller.
    #[must_use]
    pub fn known_field(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) => invalid.known_field(),
            error => error.field(),
        }
    }

    fn field(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) => invalid.field(),
            Self::TemplateNotFound => Some("templateId".to_owned()),
            Self::Refused { field, .. } => field.clone(),
            _ => None,
        }
    }

    /// The numbers of errors and of failed requests of the page, for the attempt's row, where one is the cause.
    #[must_use]
    pub fn page_counts(&self) -> (Option<u32>, Option<u32>) {
        let Self::Refused { refusal: Refusal::FailOn { errors, failed_requests, .. }, .. } = self else {
            return (None, None);
        };
        // The other number is not known: the farm counts for a refusal what the request asks for.
        let known = |count: u32| (count > 0).then_some(count);
        (known(*errors), known(*failed_requests))
    }

    /// The body of the response: a JSON object of `error`, `code` and, if one field is the cause, `field`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        self.body_of(&self.to_string(), self.field())
    }

    /// The body of the response to an address of a link, which all the world may read: no names, and the sentence of the reason.
    #[must_use]
    pub fn body_of_link(&self) -> Vec<u8> {
        self.body_of(self.reason().sentence(), None)
    }

    fn body_of(&self, message: &str, field: Option<String>) -> Vec<u8> {
        let mut body = Map::from_iter([("error".to_owned(), message.into())]);
        body.extend(self.reason().error_code().map(|code| ("code".to_owned(), code.as_str().into())));
        body.extend(field.map(|field| ("field".to_owned(), field.into())));
        Value::Object(body).to_string().into_bytes()
    }
}
