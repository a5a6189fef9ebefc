//! Why a request has failed: one row for each public code with its status, and one for each reason with its public code and
//! a sentence for people.
//!
//! Invariant: a code is stable: it keeps its name, its status and whether the attempt counts. The status of a failed request,
//! and whether it counts, are taken from its reason's public code. An error has one reason, which is its code in log lines,
//! metrics and the table of attempts.

use strum::{EnumString, IntoStaticStr, VariantArray};

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
    InvalidRequest 400 "The request is not valid HTTP, its body is incomplete, or the address of a link has a value twice or one that its template does not have."
    InvalidJson 400 "The body is not a JSON object in UTF-8."
    UnknownField 400 "The body has a field that the endpoint does not know. `field` is its name."
    RepeatedField 400 "The body has a field twice."
    MissingField 400 "A required field is missing."
    InvalidField 400 "The value of a field breaks its rule, which the message states."
    ConflictingFields 400 "Two fields, or a field and the format, exclude each other."
    MissingTemplateVariable 400 "The template has placeholders without a value. The message lists all of them."
    InvalidTemplate 400 "The filled template is empty or too large."
    TemplateFailed 400 "The template in Jinja does not fit its values, or is wrong itself. The message has the line."
    InvalidSignature 403 "The signature of a link's address is wrong."
    NotFound 404 "There is no such path, or no such link."
    TemplateNotFound 404 "The key's account has no such template."
    MethodNotAllowed 405 "The path does not accept the method. The header `allow` lists those that it accepts."
    RequestTimeout 408 "The body of the request did not arrive in time."
    BodyTooLarge 413 "The body is larger than 33,554,432 bytes."
    UnsupportedContentType 415 "The content type is not `application/json`, or has another `charset` than `utf-8`."
    UnsupportedContentEncoding 415 "The body is compressed."
    TemplateLimitExceeded 422 "The template in Jinja takes more steps, memory or text to be filled than it may."
    NameNotFound 422 "The host name of the URL does not exist."
    AddressNotPublic 422 "The URL leads to an address that is not public, or to a port that is not allowed."
    ConnectionFailed 422 "The connection to the host of the URL was refused or has failed."
    TlsFailed 422 "The TLS handshake with the host failed, or its certificate is not trusted."
    TooManyRedirects 422 "The URL redirects too often."
    NotAPage 422 "The response of the URL is not a page, such as a download."
    PageStatus 422 "The page has a status of 400 or more, and `failOnHttpStatus` is true."
    PageTooLarge 422 "The image would be over the limit of pixels, or of its format."
    PageFailed 422 "The page crashed, closed itself, stopped loading, used too much memory, went to a host of `blockHosts`, or did what `failOn` names."
    ElementNotFound 422 "No element matches `selector`, or none that `waitForSelector` matches became visible in time."
    FunctionFailed 422 "`waitForFunction` threw an error, or was not true in time."
    PageRangeExceeded 422 "`pageRanges` has pages after the last one."
    InvalidLayout 422 "The page cannot be printed with these margins, header or footer, or on one page."
    PdfStandardNotMet 422 "The page breaks a rule of `pdfStandard`, which the message states."
    QuotaExhausted 429 "All attempts of this month are used. `retry-after` has the seconds until the next one."
    DailyLimitExceeded 429 "The link's limit of attempts in a day (UTC) is reached. `retry-after` has the seconds until the next day."
    RateLimitExceeded 429 "The account's limit of requests in a minute is reached. `retry-after` has the seconds until the minute ends."
    ConcurrencyLimitExceeded 429 "As many requests of the account are being answered as its limit allows. Try again when one of them has ended."
    InternalError 500 "An error of the service."
    UnsupportedTransferCoding 501 "The transfer coding of the request is not `chunked`."
    RendererFailed 502 "The renderer failed twice while the page ran."
    RendererBusy 503 "All renderers are busy. Try again after `retry-after` seconds."
    RendererUnavailable 503 "No renderer can be reached, or no name server. Try again after `retry-after` seconds."
    ServiceBusy 503 "The service is busy, or its database is busy, full or cannot be reached. Try again after `retry-after` seconds."
    RenderTimeout 504 "The render did not end within 30 seconds after the request had arrived."
}

macro_rules! reasons {
    ($($reason:ident $code:ident $sentence:literal)*) => {
        /// The reason of a failure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
        #[strum(serialize_all = "snake_case")]
        pub enum Reason {
            $(#[doc = $sentence] $reason,)*
            /// The key is missing, malformed, unknown, disabled or expired.
            InvalidKey,
            /// The client disconnected.
            Cancelled,
        }

        impl Reason {
            /// The public `code`; `None` for an invalid key, whose body is fixed, and for a client that has disconnected.
            #[must_use]
            pub fn error_code(self) -> Option<ErrorCode> {
                match self {
                    $(Self::$reason => Some(ErrorCode::$code),)*
                    Self::InvalidKey | Self::Cancelled => None,
                }
            }

            /// What has happened.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Self::$reason => $sentence,)*
                    Self::InvalidKey => "The API key was not valid.",
                    Self::Cancelled => "The client disconnected.",
                }
            }
        }
    };
}

// Name, public code, what has happened.
reasons! {
    NotFound NotFound "There is no such path."
    LinkNotFound NotFound "There is no such link."
    InvalidSignature InvalidSignature "The signature of the link's address was wrong."
    InvalidAddress InvalidRequest "The address of the link was not valid."
    UnknownParameter InvalidRequest "The address of the link had a value that the template does not have."
    MethodNotAllowed MethodNotAllowed "The path does not accept the method."
    UnsupportedContentType UnsupportedContentType "The content type was not application/json."
    UnsupportedContentEncoding UnsupportedContentEncoding "The body was compressed."
    BodyTooLarge BodyTooLarge "The body was too large."
    BodyIncomplete InvalidRequest "The body did not arrive completely."
    InvalidJson InvalidJson "The body was not a JSON object in UTF-8."
    RepeatedField RepeatedField "The body had a field twice."
    UnknownField UnknownField "The body had a field that the endpoint does not know."
    MissingField MissingField "A required field was missing."
    InvalidField InvalidField "The value of a field broke its rule."
    ConflictingFields ConflictingFields "Two fields, or a field and the format, excluded each other."
    MissingTemplateVariable MissingTemplateVariable "The template has placeholders for which no value was given."
    FilledTemplateTooLarge InvalidTemplate "The template was too large when it was filled."
    EmptyTemplate InvalidTemplate "The template was empty when it was filled."
    TemplateFailed TemplateFailed "The template did not fit its values."
    TemplateLimitExceeded TemplateLimitExceeded "The template took more than its limits to be filled."
    TemplateNotFound TemplateNotFound "The account had no such template."
    QuotaExhausted QuotaExhausted "All attempts of the month were used."
    QuotaHeld ServiceBusy "All attempts of the month were used or held by servers that may give some back."
    DailyLimitExceeded DailyLimitExceeded "The link's limit of attempts in a day was reached."
    RateLimitExceeded RateLimitExceeded "The account's limit of requests in a minute was reached."
    ConcurrencyLimitExceeded ConcurrencyLimitExceeded "The account's limit of requests at once was reached."
    DatabaseUnavailable ServiceBusy "The service was busy."
    Internal InternalError "The service failed."
    FarmUnreachable RendererUnavailable "No renderer could be reached."
    Unauthorized RendererUnavailable "The renderer refused the service's token."
    InvalidJob RendererUnavailable "The renderer did not understand the job."
    QueueFull RendererBusy "All renderers were busy, and their queue was full."
    NoSlotInTime RendererBusy "All renderers were busy for as long as the request could wait."
    Draining RendererUnavailable "The renderer was shutting down."
    NoBrowser RendererUnavailable "No browser could be started."
    NameServerFailed RendererUnavailable "No name server answered."
    NameNotFound NameNotFound "The host name of the URL does not exist."
    AddressNotPublic AddressNotPublic "The host of the URL has an address that is not public."
    PortNotAllowed AddressNotPublic "The port of the URL is not allowed."
    ConnectionRefused ConnectionFailed "The host of the URL refused the connection."
    ConnectionFailed ConnectionFailed "The connection to the host of the URL failed."
    Tls TlsFailed "The TLS connection to the host of the URL failed."
    TooManyRedirects TooManyRedirects "The URL redirected too often."
    NotAPage NotAPage "The response of the URL was not a page."
    PageStatus PageStatus "The page had a status of 400 or more."
    HostBlocked PageFailed "The page went to a host that the request had blocked."
    FailOn PageFailed "The page had errors or failed requests, for which the request was to fail."
    InvalidSelector InvalidField "A selector was not valid CSS."
    NoSuchElement ElementNotFound "No element of the page matched the selector."
    EmptyElement ElementNotFound "The element that matched the selector had no area."
    ElementNotVisible ElementNotFound "No element that matched the selector became visible in time."
    FunctionFailed FunctionFailed "The JavaScript expression to wait for threw an error."
    FunctionNotTrue FunctionFailed "The JavaScript expression to wait for was not true in time."
    PageRangeExceeded PageRangeExceeded "The page ranges had pages after the last one."
    NoSpaceBetweenMargins InvalidLayout "The margins left no space for the page."
    VerticalScale InvalidLayout "A page of vertical lines that begin at the right has a scale."
    HeaderFailed InvalidLayout "The header or the footer could not be printed."
    FirstPageChanged InvalidLayout "The page changed while its first page was printed."
    InvalidPassword InvalidField "A password had characters that PDF does not allow."
    NotOnePage InvalidLayout "The content did not fit on one page."
    StandardNotMet PdfStandardNotMet "The page broke a rule of the PDF standard."
    PageTooLarge PageTooLarge "The image would have been too large."
    PageCrashed PageFailed "The page crashed while it was rendered."
    PageMemoryExceeded PageFailed "The page used more memory than a page may use."
    PageClosed PageFailed "The page closed itself before it was rendered."
    LoadStopped PageFailed "The page stopped loading before it was complete."
    Deadline RenderTimeout "The render did not finish in time."
    Broken RendererFailed "The renderer failed while the page ran."
}

impl ErrorCode {
    /// All codes, by status.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            // The contract has one code with two statuses.
            Self::TemplateLimitExceeded => Self::TemplateFailed.into(),
            code => code.into(),
        }
    }

    /// Whether the request counts against the quota.
    #[must_use]
    pub fn is_counted(self) -> bool {
        matches!(self.status(), 422 | 502 | 504)
    }
}

impl Reason {
    /// The name in log lines, metrics and the table of attempts.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// The reason with this name; `None` for a name of another version.
    #[must_use]
    pub fn find(code: &str) -> Option<Self> {
        code.parse().ok()
    }

    /// The HTTP status. 499 is in logs and in the table of attempts only, because the client has disconnected.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidKey => 401,
            Self::Cancelled => 499,
            reason => reason.error_code().map_or(500, ErrorCode::status),
        }
    }

    /// Whether a recorded attempt counts against the quota; if not, it is refunded. The attempt of a client which has
    /// disconnected counts if its page had begun to run.
    #[must_use]
    pub fn is_counted(self) -> bool {
        self.error_code().is_some_and(ErrorCode::is_counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_found_by_its_code_and_has_a_sentence() {
        for reason in Reason::VARIANTS {
            assert_eq!(Reason::find(reason.code()), Some(*reason));
            assert!(reason.sentence().ends_with('.'), "{}", reason.code());
        }
        assert_eq!(Reason::find("of another version"), None);
    }
}
