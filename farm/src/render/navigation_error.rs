//! Why the main document of a page could not be loaded.

use platen_shared::refusal::Refusal;
use url::Url;

use super::job_error::JobError;
use crate::egress::JobEgress;

/// The error of the job for Chromium's network error of a navigation to `url`. The caller's message names `host`.
/// `None` if Chromium shows a page in spite of the error.
pub(super) fn navigation_error(
    error_text: &str,
    url: &Url,
    host: &str,
    egress: &JobEgress,
) -> Option<JobError> {
    // The egress guard may deny a connection at any time, so its reason comes first.
    if is_local_error(name(error_text)) && egress.document_refusal(url, host).is_none() {
        return Some(JobError::NoNetwork(error_text.to_owned()));
    }
    navigation_refusal(error_text, url, host, egress).map(JobError::Refused)
}

fn name(error_text: &str) -> &str {
    error_text.strip_prefix("net::ERR_").unwrap_or(error_text)
}

/// Whether an error is one of the browser or of this machine, which no host causes.
fn is_local_error(name: &str) -> bool {
    matches!(
        name,
        "CONTEXT_SHUT_DOWN"
            | "INSUFFICIENT_RESOURCES"
            | "INTERNET_DISCONNECTED"
            | "NETWORK_CHANGED"
            | "NETWORK_IO_SUSPENDED"
            | "OUT_OF_MEMORY"
            | "PROXY_CONNECTION_FAILED"
    )
}

fn navigation_refusal(error_text: &str, url: &Url, host: &str, egress: &JobEgress) -> Option<Refusal> {
    let host = host.to_owned();
    let name = name(error_text);
    match name {
        // An error status without a body, for which Chromium shows its own page.
        "HTTP_RESPONSE_CODE_FAILURE" => return None,
        "TOO_MANY_REDIRECTS" => return Some(Refusal::TooManyRedirects { host }),
        "UNSAFE_PORT" => return Some(Refusal::PortNotAllowed { host }),
        // A download, a response without content, or a redirect to a scheme other than http and https.
        "ABORTED"
        | "UNKNOWN_URL_SCHEME"
        | "UNSAFE_REDIRECT"
        | "DISALLOWED_URL_SCHEME"
        | "INVALID_REDIRECT"
        | "INVALID_URL"
        | "FILE_NOT_FOUND" => return Some(Refusal::NotAPage { host }),
        // TLS errors come after the connection was allowed, so the egress guard has no reason for them.
        _ if is_tls_error(name) => return Some(Refusal::Tls { host }),
        _ => {}
    }
    // For Chromium the proxy has closed the connection; the egress guard has recorded why.
    if let Some(refusal) = egress.document_refusal(url, &host) {
        return Some(refusal);
    }
    Some(match name {
        "NAME_NOT_RESOLVED" | "NAME_RESOLUTION_FAILED" | "ICANN_NAME_COLLISION" => {
            Refusal::NameNotFound { host }
        }
        "CONNECTION_REFUSED" => Refusal::ConnectionRefused { host },
        _ => Refusal::ConnectionFailed { host },
    })
}

/// Whether an error is one of TLS: of the protocol or of a certificate.
fn is_tls_error(name: &str) -> bool {
    ["CERT_", "SSL_", "BAD_SSL_", "ECH_"].iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{egress::Egress, job_progress::PageStarted, metrics::Metrics};

    const SPECIFIC: [(&str, &str); 8] = [
        ("CERT_AUTHORITY_INVALID", "tls"),
        ("CERT_DATE_INVALID", "tls"),
        ("SSL_PROTOCOL_ERROR", "tls"),
        ("BAD_SSL_CLIENT_AUTH_CERT", "tls"),
        ("TOO_MANY_REDIRECTS", "too_many_redirects"),
        ("UNSAFE_PORT", "port_not_allowed"),
        ("ABORTED", "not_a_page"),
        ("UNKNOWN_URL_SCHEME", "not_a_page"),
    ];
    const GENERAL: [(&str, &str); 6] = [
        ("NAME_NOT_RESOLVED", "name_not_found"),
        ("CONNECTION_REFUSED", "connection_refused"),
        ("CONNECTION_RESET", "connection_failed"),
        ("TUNNEL_CONNECTION_FAILED", "connection_failed"),
        ("ADDRESS_UNREACHABLE", "connection_failed"),
        ("EMPTY_RESPONSE", "connection_failed"),
    ];

    #[tokio::test]
    async fn an_error_of_this_machine_is_not_one_of_the_host() {
        let egress = Egress::new(Arc::default(), Arc::new(Metrics::new())).unwrap();
        let url = Url::parse("https://10.0.0.1/").unwrap();
        let job = egress.job("", PageStarted::default());
        let error = |name: &str| navigation_error(&format!("net::ERR_{name}"), &url, "h", &job);
        for name in ["NETWORK_CHANGED", "PROXY_CONNECTION_FAILED", "INSUFFICIENT_RESOURCES"] {
            assert!(matches!(error(name), Some(JobError::NoNetwork(_))), "{name}");
        }
        for (name, _) in SPECIFIC.into_iter().chain(GENERAL) {
            assert!(matches!(error(name), Some(JobError::Refused(_))), "{name}");
        }
        job.judge(&url).await.unwrap_err();
        assert!(matches!(
            error("NETWORK_CHANGED"),
            Some(JobError::Refused(Refusal::AddressNotPublic { .. }))
        ));
    }

    #[tokio::test]
    async fn each_network_error_has_its_refusal() {
        let egress = Egress::new(Arc::default(), Arc::new(Metrics::new())).unwrap();
        let url = Url::parse("https://10.0.0.1/").unwrap();
        let code = |error: &str, egress: &JobEgress| {
            navigation_refusal(&format!("net::ERR_{error}"), &url, "h", egress).map(|refusal| refusal.code())
        };
        let unknown = egress.job("", PageStarted::default());
        for (error, expected) in SPECIFIC.into_iter().chain(GENERAL) {
            assert_eq!(code(error, &unknown), Some(expected), "{error}");
        }
        assert_eq!(code("HTTP_RESPONSE_CODE_FAILURE", &unknown), None);
        // If the connection was denied, general errors have the reason of the denial, and specific errors
        // stay.
        let denied = egress.job("", PageStarted::default());
        denied.judge(&url).await.unwrap_err();
        for (error, expected) in SPECIFIC {
            assert_eq!(code(error, &denied), Some(expected), "{error}");
        }
        for (error, _) in GENERAL {
            assert_eq!(code(error, &denied), Some("address_not_public"), "{error}");
        }
        assert_eq!(code("HTTP_RESPONSE_CODE_FAILURE", &denied), None);
    }
}
