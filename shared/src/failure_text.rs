//! What has failed, in words: a sentence for each code of an attempt's row.
//!
//! Invariant: every code that a row can have is in the table, with the public code of the response.

use crate::error_code::ErrorCode;

/// The reason of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureText {
    /// The code in a row.
    pub code: &'static str,
    /// The `code` of the response; `None` for a client that disconnected.
    pub error_code: Option<ErrorCode>,
    /// One sentence.
    pub text: &'static str,
}

macro_rules! table {
    ($($code:literal $error_code:ident $text:literal)*) => {
        const TABLE: &[FailureText] = &[$(
            FailureText { code: $code, error_code: Some(ErrorCode::$error_code), text: $text },
        )* FailureText { code: "cancelled", error_code: None, text: "The client disconnected." }];
    };
}

table! {
    "not_found" NotFound "There is no such path."
    "method_not_allowed" MethodNotAllowed "The path does not accept the method."
    "unsupported_content_type" UnsupportedContentType "The content type was not application/json."
    "unsupported_content_encoding" UnsupportedContentEncoding "The body was compressed."
    "body_too_large" BodyTooLarge "The body was too large."
    "body_incomplete" InvalidRequest "The body did not arrive completely."
    "invalid_json" InvalidJson "The body was not a JSON object in UTF-8."
    "repeated_field" RepeatedField "The body had a field twice."
    "unknown_field" UnknownField "The body had a field that the endpoint does not know."
    "missing_field" MissingField "A required field was missing."
    "invalid_field" InvalidField "The value of a field broke its rule."
    "conflicting_fields" ConflictingFields "Two fields, or a field and the format, excluded each other."
    "missing_template_variable" MissingTemplateVariable "The template has placeholders for which no value was given."
    "filled_template_too_large" InvalidTemplate "The template was too large when it was filled."
    "empty_template" InvalidTemplate "The template was empty when it was filled."
    "template_not_found" TemplateNotFound "The account had no such template."
    "quota_exhausted" QuotaExhausted "All attempts of the month were used."
    "rate_limit_exceeded" RateLimitExceeded "The account's limit of requests in a minute was reached."
    "concurrency_limit_exceeded" ConcurrencyLimitExceeded "The account's limit of requests at once was reached."
    "database_unavailable" ServiceBusy "The service was busy."
    "internal" InternalError "The service failed."
    "farm_unreachable" RendererUnavailable "No renderer could be reached."
    "unauthorized" RendererUnavailable "The renderer refused the service's token."
    "invalid_job" RendererUnavailable "The renderer did not understand the job."
    "queue_full" RendererBusy "All renderers were busy, and their queue was full."
    "no_slot_in_time" RendererBusy "All renderers were busy until the deadline."
    "draining" RendererUnavailable "The renderer was shutting down."
    "no_browser" RendererUnavailable "No browser could be started."
    "name_server_failed" RendererUnavailable "No name server answered."
    "name_not_found" NameNotFound "The host name of the URL does not exist."
    "address_not_public" AddressNotPublic "The host of the URL has an address that is not public."
    "port_not_allowed" AddressNotPublic "The port of the URL is not allowed."
    "connection_refused" ConnectionFailed "The host of the URL refused the connection."
    "connection_failed" ConnectionFailed "The connection to the host of the URL failed."
    "tls" TlsFailed "The TLS connection to the host of the URL failed."
    "too_many_redirects" TooManyRedirects "The URL redirected too often."
    "not_a_page" NotAPage "The response of the URL was not a page."
    "page_status" PageStatus "The page had a status of 400 or more."
    "invalid_selector" InvalidField "A selector was not valid CSS."
    "no_such_element" ElementNotFound "No element of the page matched the selector."
    "empty_element" ElementNotFound "The element that matched the selector had no area."
    "element_not_visible" ElementNotFound "No element that matched the selector became visible in time."
    "page_range_exceeded" PageRangeExceeded "The page ranges had pages after the last one."
    "no_space_between_margins" InvalidLayout "The margins left no space for the page."
    "header_failed" InvalidLayout "The header or the footer could not be printed."
    "not_one_page" InvalidLayout "The content did not fit on one page."
    "page_too_large" PageTooLarge "The image would have been too large."
    "page_crashed" PageFailed "The page crashed while it was rendered."
    "page_memory_exceeded" PageFailed "The page used more memory than a page may use."
    "page_closed" PageFailed "The page closed itself before it was rendered."
    "load_stopped" PageFailed "The page stopped loading before it was complete."
    "deadline" RenderTimeout "The render did not finish in time."
    "broken" RendererFailed "The renderer failed while the page ran."
}

/// The reason with this code; `None` for a code of another version.
#[must_use]
pub fn find(code: &str) -> Option<&'static FailureText> {
    TABLE.iter().find(|row| row.code == code)
}

#[cfg(test)]
mod tests {
    use strum::VariantNames as _;

    use super::*;
    use crate::refusal::Refusal;

    #[test]
    fn every_refusal_has_a_sentence_and_its_public_code() {
        for code in Refusal::VARIANTS {
            let known = find(code).unwrap_or_else(|| panic!("no sentence for {code}"));
            let fields = serde_json::json!({
                "code": code, "host": "a.example", "field": "selector", "status": 404, "mebibytes": 9, "retry_after": 1, "page_ran": true,
            });
            let refusal: Refusal = serde_json::from_value(fields).unwrap();
            assert_eq!(known.error_code, refusal.error_code(), "{code}");
        }
        assert_eq!(find("of another version"), None);
    }

    #[test]
    fn each_code_has_one_sentence() {
        for row in TABLE {
            assert_eq!(find(row.code), Some(row));
            assert!(row.text.ends_with('.'), "{}", row.code);
        }
    }
}
