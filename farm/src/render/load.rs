//! Bringing the job's page into the browser.
//!
//! Invariant: the viewport is set before the first byte of the page arrives, so the page's first
//! script sees the right size.

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::SetDeviceMetricsOverrideParams,
    page::{NavigateParams, SetDocumentContentParams},
};
use futures::future;
use platen_shared::{
    job::{RenderJob, Source, Viewport},
    refusal::Refusal,
};
use tokio::{sync::watch, time::timeout};

use super::{JobError, attendant::Progress};
use crate::{cdp::Session, egress::Traffic, page::OPEN_LIMIT};

/// Sets the viewport. An empty page answers at once, unless its browser hangs.
pub(super) async fn prepare(session: &Session, job: &RenderJob) -> Result<(), JobError> {
    let answered = timeout(OPEN_LIMIT, session.call(&metrics(&job.viewport))).await;
    answered.map_err(|_| JobError::Stuck)?.map(drop).map_err(JobError::Cdp)
}

fn metrics(viewport: &Viewport) -> SetDeviceMetricsOverrideParams {
    SetDeviceMetricsOverrideParams::new(
        i64::from(viewport.width.get()),
        i64::from(viewport.height.get()),
        viewport.device_scale_factor.get(),
        false,
    )
}

/// Delivers the page and returns when its document has begun; `progress` tells the rest.
pub(super) async fn deliver(
    session: &Session,
    main_frame: &str,
    source: &Source,
    traffic: &Traffic,
    progress: &mut watch::Receiver<Progress>,
) -> Result<(), JobError> {
    let before = progress.borrow().documents;
    match source {
        Source::Html(html) => {
            let content = SetDocumentContentParams::new(main_frame.to_owned(), html.as_str());
            session.call(&content).await?;
        }
        Source::Url(url) => {
            let url = url.as_url();
            let answer = session.call(&NavigateParams::new(url.as_str())).await?;
            if let Some(failure) = answer.error_text.as_deref() {
                let host = url.host_str().unwrap_or_default();
                // Chromium sees a proxy that hangs up; the proxy knows why.
                if let Some(refusal) = traffic.refusal(host).or_else(|| refusal_for(failure, host)) {
                    tracing::debug!(failure, "a page could not be fetched");
                    return Err(JobError::Refused(refusal));
                }
            }
        }
    }
    reach(progress, |progress| progress.documents > before).await;
    Ok(())
}

/// Waits until `progress` is as wanted. Does not return when nobody reports progress any more:
/// then the attendant has ended, and with it the job.
pub(super) async fn reach(progress: &mut watch::Receiver<Progress>, wanted: impl FnMut(&Progress) -> bool) {
    if progress.wait_for(wanted).await.is_err() {
        future::pending::<()>().await;
    }
}

/// What Chromium's network error means to the caller; `None` where there is a page all the same.
fn refusal_for(error_text: &str, host: &str) -> Option<Refusal> {
    let host = host.to_owned();
    let name = error_text.strip_prefix("net::ERR_").unwrap_or(error_text);
    Some(match name {
        // An error status without a body; Chromium shows a page of its own for it.
        "HTTP_RESPONSE_CODE_FAILURE" => return None,
        "NAME_NOT_RESOLVED" | "NAME_RESOLUTION_FAILED" | "ICANN_NAME_COLLISION" => {
            Refusal::NameNotFound { host }
        }
        "CONNECTION_REFUSED" => Refusal::ConnectionRefused { host },
        "TOO_MANY_REDIRECTS" => Refusal::TooManyRedirects { host },
        // A download, an answer without content, or a redirect out of http and https.
        "ABORTED"
        | "UNKNOWN_URL_SCHEME"
        | "UNSAFE_REDIRECT"
        | "DISALLOWED_URL_SCHEME"
        | "INVALID_REDIRECT"
        | "INVALID_URL"
        | "FILE_NOT_FOUND" => Refusal::NotAPage { host },
        _ if ["CERT_", "SSL_", "BAD_SSL_", "ECH_"].iter().any(|family| name.starts_with(family)) => {
            Refusal::Tls { host }
        }
        _ => Refusal::ConnectionFailed { host },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_errors_are_told_apart() {
        let host = || "h".to_owned();
        for (error, refusal) in [
            ("NAME_NOT_RESOLVED", Refusal::NameNotFound { host: host() }),
            ("CONNECTION_REFUSED", Refusal::ConnectionRefused { host: host() }),
            ("CONNECTION_RESET", Refusal::ConnectionFailed { host: host() }),
            ("CONNECTION_TIMED_OUT", Refusal::ConnectionFailed { host: host() }),
            ("ADDRESS_UNREACHABLE", Refusal::ConnectionFailed { host: host() }),
            ("EMPTY_RESPONSE", Refusal::ConnectionFailed { host: host() }),
            ("UNSAFE_PORT", Refusal::ConnectionFailed { host: host() }),
            ("CERT_AUTHORITY_INVALID", Refusal::Tls { host: host() }),
            ("SSL_PROTOCOL_ERROR", Refusal::Tls { host: host() }),
            ("TOO_MANY_REDIRECTS", Refusal::TooManyRedirects { host: host() }),
            ("ABORTED", Refusal::NotAPage { host: host() }),
        ] {
            assert_eq!(refusal_for(&format!("net::ERR_{error}"), "h"), Some(refusal), "{error}");
        }
        assert_eq!(refusal_for("net::ERR_HTTP_RESPONSE_CODE_FAILURE", "h"), None);
    }
}
