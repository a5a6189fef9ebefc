//! Why a request has failed: one row for each reason, with its public code and a sentence for people.
//!
//! Invariant: the status of a failed request, and whether it counts, are those of its reason's public code. An error has
//! one reason, which is its code in log lines, metrics and the table of attempts.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::error_code::ErrorCode;

macro_rules! reasons {
    ($($reason:ident $code:ident $sentence:literal)*) => {
        /// The reason of a failure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
        #[strum(serialize_all = "snake_case")]
        pub enum Reason {
            $(#[doc = $sentence] $reason,)*
            /// The key is missing, malformed, unknown or disabled.
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
    TemplateNotFound TemplateNotFound "The account had no such template."
    QuotaExhausted QuotaExhausted "All attempts of the month were used."
    RateLimitExceeded RateLimitExceeded "The account's limit of requests in a minute was reached."
    ConcurrencyLimitExceeded ConcurrencyLimitExceeded "The account's limit of requests at once was reached."
    DatabaseUnavailable ServiceBusy "The service was busy."
    Internal InternalError "The service failed."
    FarmUnreachable RendererUnavailable "No renderer could be reached."
    Unauthorized RendererUnavailable "The renderer refused the service's token."
    InvalidJob RendererUnavailable "The renderer did not understand the job."
    QueueFull RendererBusy "All renderers were busy, and their queue was full."
    NoSlotInTime RendererBusy "All renderers were busy until the deadline."
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
    InvalidSelector InvalidField "A selector was not valid CSS."
    NoSuchElement ElementNotFound "No element of the page matched the selector."
    EmptyElement ElementNotFound "The element that matched the selector had no area."
    ElementNotVisible ElementNotFound "No element that matched the selector became visible in time."
    PageRangeExceeded PageRangeExceeded "The page ranges had pages after the last one."
    NoSpaceBetweenMargins InvalidLayout "The margins left no space for the page."
    HeaderFailed InvalidLayout "The header or the footer could not be printed."
    NotOnePage InvalidLayout "The content did not fit on one page."
    PageTooLarge PageTooLarge "The image would have been too large."
    PageCrashed PageFailed "The page crashed while it was rendered."
    PageMemoryExceeded PageFailed "The page used more memory than a page may use."
    PageClosed PageFailed "The page closed itself before it was rendered."
    LoadStopped PageFailed "The page stopped loading before it was complete."
    Deadline RenderTimeout "The render did not finish in time."
    Broken RendererFailed "The renderer failed while the page ran."
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

    /// Whether a recorded attempt counts against the quota; if not, it is refunded. That of a client which has
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
