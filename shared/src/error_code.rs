//! The `code` of an error in the public API.
//!
//! Invariant: a code is stable: it keeps its name, its status and whether the attempt counts.

use strum::{IntoStaticStr, VariantArray};

macro_rules! codes {
    ($($code:ident $status:literal $meaning:literal)*) => {
        /// The `code` of an error. A 401 has none: its body is fixed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
        #[strum(serialize_all = "snake_case")]
        pub enum ErrorCode {
            $(#[doc = $meaning] $code,)*
        }

        impl ErrorCode {
            /// The HTTP status.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$code => $status,)* }
            }

            /// What has happened, in Markdown.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$code => $meaning,)* }
            }
        }
    };
}

// Name, HTTP status, what has happened.
codes! {
    InvalidRequest 400 "The request is not valid HTTP, or its body is incomplete."
    InvalidJson 400 "The body is not a JSON object in UTF-8."
    UnknownField 400 "The body has a field that the endpoint does not know. `field` is its name."
    RepeatedField 400 "The body has a field twice."
    MissingField 400 "A required field is missing."
    InvalidField 400 "The value of a field breaks its rule, which the message states."
    ConflictingFields 400 "Two fields, or a field and the format, exclude each other."
    MissingTemplateVariable 400 "The template has placeholders without a value. The message lists all of them."
    InvalidTemplate 400 "The filled template is empty or too large."
    NotFound 404 "There is no such path."
    TemplateNotFound 404 "The key's account has no such template."
    MethodNotAllowed 405 "The path does not accept the method. The header `allow` lists those that it accepts."
    RequestTimeout 408 "The body of the request did not arrive in time."
    BodyTooLarge 413 "The body is larger than 33,554,432 bytes."
    UnsupportedContentType 415 "The content type is not `application/json`."
    UnsupportedContentEncoding 415 "The body is compressed."
    NameNotFound 422 "The host name of the URL does not exist."
    AddressNotPublic 422 "The URL leads to an address that is not public, or to a port that is not allowed."
    ConnectionFailed 422 "The connection to the host of the URL was refused or has failed."
    TlsFailed 422 "The TLS handshake with the host failed, or its certificate is not trusted."
    TooManyRedirects 422 "The URL redirects too often."
    NotAPage 422 "The response of the URL is not a page, such as a download."
    PageStatus 422 "The page has a status of 400 or more, and `failOnHttpStatus` is true."
    PageTooLarge 422 "The image would be over the limit of pixels, or of its format."
    PageFailed 422 "The page crashed, closed itself, stopped loading or used too much memory."
    ElementNotFound 422 "No element matches `selector`, or none that `waitForSelector` matches became visible in time."
    PageRangeExceeded 422 "`pageRanges` has pages after the last one."
    InvalidLayout 422 "The page cannot be printed with these margins, header or footer, or on one page."
    QuotaExhausted 429 "All attempts of this month are used. `retry-after` has the seconds until the next one."
    RateLimitExceeded 429 "The account's limit of requests in a minute is reached. `retry-after` has the seconds until the minute ends."
    ConcurrencyLimitExceeded 429 "As many requests of the account are being answered as its limit allows. Try again when one of them has ended."
    InternalError 500 "An error of the service."
    UnsupportedTransferCoding 501 "The transfer coding of the request is not `chunked`."
    RendererFailed 502 "The renderer failed twice while the page ran."
    RendererBusy 503 "All renderers are busy. Try again after `retry-after` seconds."
    RendererUnavailable 503 "No renderer can be reached, or no name server. Try again after `retry-after` seconds."
    ServiceBusy 503 "The service is busy. Try again after `retry-after` seconds."
    RenderTimeout 504 "The render took longer than 30 seconds."
}

impl ErrorCode {
    /// All codes, by status.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the request counts against the quota.
    #[must_use]
    pub fn is_counted(self) -> bool {
        matches!(self.status(), 422 | 502 | 504)
    }
}
