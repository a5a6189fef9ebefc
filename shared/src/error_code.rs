//! The `code` of an error in the public API.
//!
//! Invariant: a code is stable: it keeps its name, its status and whether the attempt counts.

use strum::{IntoStaticStr, VariantArray};

/// The `code` of an error. A 401 has none: its body is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "the meanings describe the variants")]
pub enum ErrorCode {
    InvalidRequest,
    InvalidJson,
    UnknownField,
    RepeatedField,
    MissingField,
    InvalidField,
    ConflictingFields,
    MissingTemplateVariable,
    InvalidTemplate,
    NotFound,
    TemplateNotFound,
    MethodNotAllowed,
    RequestTimeout,
    BodyTooLarge,
    UnsupportedContentType,
    UnsupportedContentEncoding,
    NameNotFound,
    AddressNotPublic,
    ConnectionFailed,
    TlsFailed,
    TooManyRedirects,
    NotAPage,
    PageStatus,
    PageTooLarge,
    PageFailed,
    ElementNotFound,
    PageRangeExceeded,
    InvalidLayout,
    QuotaExhausted,
    RateLimitExceeded,
    ConcurrencyLimitExceeded,
    InternalError,
    UnsupportedTransferCoding,
    RendererFailed,
    RendererBusy,
    RendererUnavailable,
    ServiceBusy,
    RenderTimeout,
}

impl ErrorCode {
    /// All codes, by status.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest
            | Self::InvalidJson
            | Self::UnknownField
            | Self::RepeatedField
            | Self::MissingField
            | Self::InvalidField
            | Self::ConflictingFields
            | Self::MissingTemplateVariable
            | Self::InvalidTemplate => 400,
            Self::NotFound | Self::TemplateNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::BodyTooLarge => 413,
            Self::UnsupportedContentType | Self::UnsupportedContentEncoding => 415,
            Self::NameNotFound
            | Self::AddressNotPublic
            | Self::ConnectionFailed
            | Self::TlsFailed
            | Self::TooManyRedirects
            | Self::NotAPage
            | Self::PageStatus
            | Self::PageTooLarge
            | Self::PageFailed
            | Self::ElementNotFound
            | Self::PageRangeExceeded
            | Self::InvalidLayout => 422,
            Self::QuotaExhausted | Self::RateLimitExceeded | Self::ConcurrencyLimitExceeded => 429,
            Self::InternalError => 500,
            Self::UnsupportedTransferCoding => 501,
            Self::RendererFailed => 502,
            Self::RendererBusy | Self::RendererUnavailable | Self::ServiceBusy => 503,
            Self::RenderTimeout => 504,
        }
    }

    /// Whether the request counts against the quota.
    #[must_use]
    pub fn is_counted(self) -> bool {
        matches!(self.status(), 422 | 502 | 504)
    }

    /// What has happened, in Markdown.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is not valid HTTP, or its body is incomplete.",
            Self::InvalidJson => "The body is not a JSON object in UTF-8.",
            Self::UnknownField => {
                "The body has a field that the endpoint does not know. `field` is its name."
            }
            Self::RepeatedField => "The body has a field twice.",
            Self::MissingField => "A required field is missing.",
            Self::InvalidField => "The value of a field breaks its rule, which the message states.",
            Self::ConflictingFields => "Two fields, or a field and the format, exclude each other.",
            Self::MissingTemplateVariable => {
                "The template has placeholders without a value. The message lists all of them."
            }
            Self::InvalidTemplate => "The filled template is empty or too large.",
            Self::NotFound => "There is no such path.",
            Self::TemplateNotFound => "The key's account has no such template.",
            Self::MethodNotAllowed => {
                "The path does not accept the method. The header `allow` lists those that it accepts."
            }
            Self::RequestTimeout => "The body of the request did not arrive in time.",
            Self::BodyTooLarge => "The body is larger than 33,554,432 bytes.",
            Self::UnsupportedContentType => "The content type is not `application/json`.",
            Self::UnsupportedContentEncoding => "The body is compressed.",
            Self::NameNotFound => "The host name of the URL does not exist.",
            Self::AddressNotPublic => {
                "The URL leads to an address that is not public, or to a port that is not allowed."
            }
            Self::ConnectionFailed => "The connection to the host of the URL was refused or has failed.",
            Self::TlsFailed => "The TLS handshake with the host failed, or its certificate is not trusted.",
            Self::TooManyRedirects => "The URL redirects too often.",
            Self::NotAPage => "The response of the URL is not a page, such as a download.",
            Self::PageStatus => "The page has a status of 400 or more, and `failOnHttpStatus` is true.",
            Self::PageTooLarge => "The image would be over the limit of pixels, or of its format.",
            Self::PageFailed => "The page crashed, closed itself, stopped loading or used too much memory.",
            Self::ElementNotFound => {
                "No element matches `selector`, or none that `waitForSelector` matches became visible in time."
            }
            Self::PageRangeExceeded => "`pageRanges` has pages after the last one.",
            Self::InvalidLayout => {
                "The page cannot be printed with these margins, header or footer, or on one page."
            }
            Self::QuotaExhausted => {
                "All attempts of this month are used. `retry-after` has the seconds until the next one."
            }
            Self::RateLimitExceeded => {
                "The account's limit of requests in a minute is reached. `retry-after` has the seconds until the minute ends."
            }
            Self::ConcurrencyLimitExceeded => {
                "As many requests of the account are being answered as its limit allows. Try again when one of them has \
                 ended."
            }
            Self::InternalError => "An error of the service.",
            Self::UnsupportedTransferCoding => "The transfer coding of the request is not `chunked`.",
            Self::RendererFailed => "The renderer failed twice while the page ran.",
            Self::RendererBusy => "All renderers are busy. Try again after `retry-after` seconds.",
            Self::RendererUnavailable => {
                "No renderer can be reached, or no name server. Try again after `retry-after` seconds."
            }
            Self::ServiceBusy => "The service is busy. Try again after `retry-after` seconds.",
            Self::RenderTimeout => "The render took longer than 30 seconds.",
        }
    }
}
