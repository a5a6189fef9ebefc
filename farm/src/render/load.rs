//! Bringing the job's page into the browser.
//!
//! Invariant: the viewport is set before the first byte of the page arrives, so the page's first script
//! sees the right size; and the document of a job is one whose time began with the job.

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::{ScreenOrientation, ScreenOrientationType, SetDeviceMetricsOverrideParams},
    page::{NavigateParams, SetDocumentContentParams},
};
use futures::future;
use platen_cdp::Session;
use platen_shared::{
    job::{RenderJob, Source, Viewport},
    refusal::Refusal,
};
use tokio::{sync::watch, task::yield_now, time::timeout};
use url::Url;

use super::{
    JobError,
    load_state::LoadState,
    reset,
    stillness::{self, RendererMetrics},
};
use crate::{
    egress::JobEgress,
    page::{OPEN_TIMEOUT, Page},
};

/// Sets the viewport and gives a job of markup an empty document whose time begins now; a URL brings its
/// own. Returns the page's counters before the job. An empty page answers at once, unless its browser
/// hangs.
pub(super) async fn prepare(page: &mut Page, job: &RenderJob) -> Result<RendererMetrics, JobError> {
    let prepared = async {
        let set = page.session.start(&device_metrics(&job.viewport))?;
        if matches!(job.source, Source::Html(_)) && !reset::empty(page).await? {
            return Err(JobError::Stale);
        }
        let before = stillness::metrics(&page.session).await?;
        set.await?;
        Ok(before)
    };
    timeout(OPEN_TIMEOUT, prepared).await.map_err(|_| JobError::Stuck)?
}

/// The viewport, and a screen of the same size. Without one of its own, a page has the screen of the
/// browser process, which any other page can turn (`screen.orientation.lock`).
fn device_metrics(viewport: &Viewport) -> SetDeviceMetricsOverrideParams {
    let (width, height) = (i64::from(viewport.width.get()), i64::from(viewport.height.get()));
    let orientation = if width >= height {
        ScreenOrientationType::LandscapePrimary
    } else {
        ScreenOrientationType::PortraitPrimary
    };
    SetDeviceMetricsOverrideParams {
        screen_width: Some(width),
        screen_height: Some(height),
        screen_orientation: Some(ScreenOrientation::new(orientation, 0)),
        ..SetDeviceMetricsOverrideParams::new(width, height, viewport.device_scale_factor.get(), false)
    }
}

/// Delivers the page and returns when its document has begun; `state` says the rest.
pub(super) async fn deliver(
    session: &Session,
    main_frame: &str,
    source: &Source,
    traffic: &JobEgress,
    state: &mut watch::Receiver<LoadState>,
) -> Result<(), JobError> {
    let before = state.borrow().documents;
    traffic.start_page();
    match source {
        Source::Html(html) => {
            let content = SetDocumentContentParams::new(main_frame.to_owned(), html.as_str());
            session.call(&content).await?;
        }
        Source::Url(url) => {
            let url = url.as_url();
            let answer = session.call(&NavigateParams::new(url.as_str())).await?;
            if let Some(failure) = answer.error_text.as_deref() {
                // The events in front of this answer say where a redirect led; they are seen by then.
                yield_now().await;
                let host = url.host_str().unwrap_or_default();
                if let Some(refusal) = navigation_refusal(failure, url, host, traffic) {
                    tracing::debug!(failure, "a page could not be fetched");
                    return Err(JobError::Refused(refusal));
                }
            }
        }
    }
    reach(state, |state| state.documents > before).await;
    Ok(())
}

/// Waits until `state` is as wanted. Does not return when the state is not reported any more: then the
/// event handler has ended, and with it the job.
pub(super) async fn reach(state: &mut watch::Receiver<LoadState>, wanted: impl FnMut(&LoadState) -> bool) {
    if state.wait_for(wanted).await.is_err() {
        future::pending::<()>().await;
    }
}

/// What Chromium's network error of a navigation to `url` means to the caller, who reads about `host`;
/// `None` where there is a page all the same.
pub(super) fn navigation_refusal(
    error_text: &str,
    url: &Url,
    host: &str,
    traffic: &JobEgress,
) -> Option<Refusal> {
    let host = host.to_owned();
    let name = error_text.strip_prefix("net::ERR_").unwrap_or(error_text);
    match name {
        // An error status without a body; Chromium shows a page of its own for it.
        "HTTP_RESPONSE_CODE_FAILURE" => return None,
        "TOO_MANY_REDIRECTS" => return Some(Refusal::TooManyRedirects { host }),
        "UNSAFE_PORT" => return Some(Refusal::PortNotAllowed { host }),
        // A download, an answer without content, or a redirect out of http and https.
        "ABORTED"
        | "UNKNOWN_URL_SCHEME"
        | "UNSAFE_REDIRECT"
        | "DISALLOWED_URL_SCHEME"
        | "INVALID_REDIRECT"
        | "INVALID_URL"
        | "FILE_NOT_FOUND" => return Some(Refusal::NotAPage { host }),
        // The connection was made, whatever became of others.
        _ if is_tls_error(name) => return Some(Refusal::Tls { host }),
        _ => {}
    }
    // Chromium sees a proxy that closes the connection; the proxy knows why.
    if let Some(refusal) = traffic.document_refusal(url, &host) {
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

/// Whether Chromium gave up a connection because of TLS: the protocol, or a certificate.
fn is_tls_error(name: &str) -> bool {
    ["CERT_", "SSL_", "BAD_SSL_", "ECH_"].iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Config, cancellation::PageStarted, egress::Egress, metrics::Metrics};

    const DEFINITE: [(&str, &str); 8] = [
        ("CERT_AUTHORITY_INVALID", "tls"),
        ("CERT_DATE_INVALID", "tls"),
        ("SSL_PROTOCOL_ERROR", "tls"),
        ("BAD_SSL_CLIENT_AUTH_CERT", "tls"),
        ("TOO_MANY_REDIRECTS", "too_many_redirects"),
        ("UNSAFE_PORT", "port_not_allowed"),
        ("ABORTED", "not_a_page"),
        ("UNKNOWN_URL_SCHEME", "not_a_page"),
    ];
    const VAGUE: [(&str, &str); 6] = [
        ("NAME_NOT_RESOLVED", "name_not_found"),
        ("CONNECTION_REFUSED", "connection_refused"),
        ("CONNECTION_RESET", "connection_failed"),
        ("TUNNEL_CONNECTION_FAILED", "connection_failed"),
        ("ADDRESS_UNREACHABLE", "connection_failed"),
        ("EMPTY_RESPONSE", "connection_failed"),
    ];

    #[tokio::test]
    async fn network_errors_are_told_apart() {
        let egress = Egress::new(&Config::default(), Arc::new(Metrics::new())).unwrap();
        let url = Url::parse("https://10.0.0.1/").unwrap();
        let code = |error: &str, traffic: &JobEgress| {
            navigation_refusal(&format!("net::ERR_{error}"), &url, "h", traffic).map(|refusal| refusal.code())
        };
        let unknown = egress.traffic("", PageStarted::default());
        for (error, expected) in DEFINITE.into_iter().chain(VAGUE) {
            assert_eq!(code(error, &unknown), Some(expected), "{error}");
        }
        assert_eq!(code("HTTP_RESPONSE_CODE_FAILURE", &unknown), None);
        // Where the connection was denied, vague errors have their reason, and the others stay.
        let denied = egress.traffic("", PageStarted::default());
        denied.judge(&url).await.unwrap_err();
        for (error, expected) in DEFINITE {
            assert_eq!(code(error, &denied), Some(expected), "{error}");
        }
        for (error, _) in VAGUE {
            assert_eq!(code(error, &denied), Some("address_not_public"), "{error}");
        }
        assert_eq!(code("HTTP_RESPONSE_CODE_FAILURE", &denied), None);
    }
}
