//! The navigations of a page's main frame, and why its document could not be loaded.
//!
//! Chromium reports a navigation as scheduled, requested and started, in this order, but not always all three, and its end
//! as a new document, or as that the frame has stopped loading. Navigations within the document have no such events in
//! between. A form is requested before it is scheduled, and nothing reports that it was refused or cancelled after that.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::page::GetNavigationHistoryParams;
use platen_cdp::{Event, Session};
use platen_shared::refusal::Refusal;
use tokio::time::sleep;
use url::Url;

use super::script;
use crate::{egress::JobEgress, error::JobError};

/// Navigations that a page may make after the document of its job. It then stays as it is.
pub(super) const MAX_NAVIGATIONS: u32 = 5;

/// The navigation of the main frame that is in progress, and the number of those that led to a document.
#[derive(Debug, Default)]
pub(super) struct Navigations {
    is_scheduled: bool,
    /// The renderer has requested it, and the browser process has not started it yet.
    is_requested: bool,
    is_started: bool,
    /// How many may still lead to a document.
    left: u32,
}

impl Navigations {
    /// `has_address` says that the job's document is the result of a navigation.
    pub(super) fn new(has_address: bool) -> Self {
        Self { left: MAX_NAVIGATIONS + u32::from(has_address), ..Self::default() }
    }

    /// Whether the main frame navigates after an event; `None` if the event is about something else.
    pub(super) fn change(&mut self, event: &Event, main_frame: &str) -> Option<bool> {
        // The generated types lack some of these events, which the protocol calls deprecated.
        let name = event.method().strip_prefix("Page.frame")?;
        let fields = event.fields();
        if fields["frameId"] != main_frame {
            return None;
        }
        match name {
            // A refresh after some seconds shows its page until then.
            "ScheduledNavigation" => {
                self.is_scheduled = fields["delay"].as_f64().is_some_and(|seconds| seconds < 1.0);
            }
            "ClearedScheduledNavigation" => self.is_scheduled = false,
            "RequestedNavigation" => self.is_requested |= fields["disposition"] == "currentTab",
            "StartedNavigating" => {
                let kind = fields["navigationType"].as_str();
                if !matches!(kind, Some("sameDocument" | "historySameDocument")) {
                    (self.is_requested, self.is_started) = (false, true);
                }
            }
            // It may be about the document before, if the browser process has started no navigation since.
            "StoppedLoading" => self.is_started = false,
            _ => return None,
        }
        Some(self.left > 0 && (self.is_scheduled || self.is_requested || self.is_started))
    }

    /// The main frame has a new document. Whether a navigation led to it: `document.open` and the markup of a job without an
    /// address do not navigate.
    pub(super) fn committed(&mut self) -> bool {
        let navigated = self.is_started;
        self.left = self.left.saturating_sub(u32::from(navigated));
        (self.is_scheduled, self.is_requested, self.is_started) = (false, false, false);
        navigated
    }

    /// Whether one was requested, is not to begin at a later time, and has not begun.
    pub(super) fn awaits_start(&self) -> bool {
        self.left > 0 && self.is_requested && !self.is_scheduled && !self.is_started
    }

    /// The navigation that was requested does not begin.
    pub(super) fn give_up(&mut self) {
        self.is_requested = false;
    }

    /// Whether further navigations are cancelled.
    pub(super) fn are_over(&self) -> bool {
        self.left == 0
    }
}

/// The time after which it is asked whether a navigation that was requested begins; it usually does in a few milliseconds.
const START_TIME: Duration = Duration::from_millis(250);
/// Completes after the tasks that the page has now.
const LATER_TASK: &str = "scheduler.postTask(() => {})";

/// Completes when a navigation that was requested before has begun, or does not begin: the page has run the tasks that it had,
/// of which one may submit a form, and the browser process has received what these have sent.
pub(super) async fn would_have_begun(session: &Session, main_frame: &str) {
    let answers = async || {
        let world = session.call(&script::create_world(main_frame)).await?.execution_context_id;
        let mut later_task = script::evaluate(LATER_TASK, world);
        later_task.await_promise = Some(true);
        session.call(&later_task).await?;
        session.call(&GetNavigationHistoryParams {}).await
    };
    let mut answered = 0;
    // The browser process may begin a navigation some milliseconds after it has received it.
    while answered < 2 {
        sleep(START_TIME).await;
        answered += u32::from(answers().await.is_ok());
    }
}

/// The first words of errors of TLS: of the protocol or of a certificate.
const TLS_ERRORS: [&str; 4] = ["CERT_", "SSL_", "BAD_SSL_", "ECH_"];

/// The error of the job for Chromium's network error of a navigation to `url`. The caller's message names `host`.
/// `None` if Chromium shows a page in spite of the error.
pub(super) fn navigation_error(
    error_text: &str,
    url: &Url,
    host: &str,
    egress: &JobEgress,
) -> Option<JobError> {
    let host = host.to_owned();
    let name = error_text.strip_prefix("net::ERR_").unwrap_or(error_text);
    // For Chromium the proxy has closed the connection; the egress guard has recorded why. It may deny a connection at any
    // time.
    let denied = egress.document_refusal(url, &host);
    Some(JobError::Refused(match name {
        // An error status without a body, for which Chromium shows its own page.
        "HTTP_RESPONSE_CODE_FAILURE" => return None,
        "TOO_MANY_REDIRECTS" => Refusal::TooManyRedirects { host },
        "UNSAFE_PORT" => Refusal::PortNotAllowed { host },
        // A download, a response without content, or a redirect to a scheme other than http and https.
        "ABORTED"
        | "UNKNOWN_URL_SCHEME"
        | "UNSAFE_REDIRECT"
        | "DISALLOWED_URL_SCHEME"
        | "INVALID_REDIRECT"
        | "INVALID_URL"
        | "FILE_NOT_FOUND" => Refusal::NotAPage { host },
        // TLS errors come after the connection was allowed, so the egress guard has no reason for them.
        _ if TLS_ERRORS.iter().any(|family| name.starts_with(family)) => Refusal::Tls { host },
        _ if let Some(refusal) = denied => refusal,
        // Errors of the browser or of this machine, which no host causes.
        "CONTEXT_SHUT_DOWN"
        | "INSUFFICIENT_RESOURCES"
        | "INTERNET_DISCONNECTED"
        | "NETWORK_CHANGED"
        | "NETWORK_IO_SUSPENDED"
        | "OUT_OF_MEMORY"
        | "PROXY_CONNECTION_FAILED" => return Some(JobError::NoNetwork(error_text.to_owned())),
        "NAME_NOT_RESOLVED" | "NAME_RESOLUTION_FAILED" | "ICANN_NAME_COLLISION" => {
            Refusal::NameNotFound { host }
        }
        "CONNECTION_REFUSED" => Refusal::ConnectionRefused { host },
        _ => Refusal::ConnectionFailed { host },
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        egress::{Egress, Trust},
        job_progress::PageStarted,
        metrics::Metrics,
    };

    #[tokio::test]
    async fn each_network_error_has_its_refusal() {
        let egress = Egress::new(Arc::default(), Arc::new(Metrics::new())).unwrap();
        let url = Url::parse("https://10.0.0.1/").unwrap();
        let code = |name: &str, job: &JobEgress| {
            navigation_error(&format!("net::ERR_{name}"), &url, "h", job).map(|error| match error {
                JobError::Refused(refusal) => refusal.code(),
                JobError::NoNetwork(_) => "of this machine",
                error => panic!("{error}"),
            })
        };
        let allowed = egress.job("", PageStarted::default(), &[]);
        let denied = egress.job("", PageStarted::default(), &[]);
        denied.judge(&url, Trust::Operator).await.unwrap_err();
        // If the connection was denied, errors that may follow from that have its reason.
        for (name, expected, may_be_denied) in [
            ("HTTP_RESPONSE_CODE_FAILURE", None, false),
            ("CERT_AUTHORITY_INVALID", Some("tls"), false),
            ("CERT_DATE_INVALID", Some("tls"), false),
            ("SSL_PROTOCOL_ERROR", Some("tls"), false),
            ("BAD_SSL_CLIENT_AUTH_CERT", Some("tls"), false),
            ("TOO_MANY_REDIRECTS", Some("too_many_redirects"), false),
            ("UNSAFE_PORT", Some("port_not_allowed"), false),
            ("ABORTED", Some("not_a_page"), false),
            ("UNKNOWN_URL_SCHEME", Some("not_a_page"), false),
            ("NAME_NOT_RESOLVED", Some("name_not_found"), true),
            ("CONNECTION_REFUSED", Some("connection_refused"), true),
            ("CONNECTION_RESET", Some("connection_failed"), true),
            ("TUNNEL_CONNECTION_FAILED", Some("connection_failed"), true),
            ("ADDRESS_UNREACHABLE", Some("connection_failed"), true),
            ("EMPTY_RESPONSE", Some("connection_failed"), true),
            ("NETWORK_CHANGED", Some("of this machine"), true),
            ("PROXY_CONNECTION_FAILED", Some("of this machine"), true),
            ("INSUFFICIENT_RESOURCES", Some("of this machine"), true),
        ] {
            assert_eq!(code(name, &allowed), expected, "{name}");
            let expected = if may_be_denied { Some("address_not_public") } else { expected };
            assert_eq!(code(name, &denied), expected, "{name}");
        }
    }
}
