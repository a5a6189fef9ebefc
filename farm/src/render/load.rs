//! Bringing the job's page into the browser.
//!
//! Invariant: the viewport is set before the first byte of the page arrives, so the page's first script
//! sees the right size; and the document of a job is one whose time began with the job.

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::{ScreenOrientation, ScreenOrientationType, SetDeviceMetricsOverrideParams},
    page::{NavigateParams, SetDocumentContentParams},
};
use futures::future;
use platen_shared::{
    job::{RenderJob, Source, Viewport},
    refusal::Refusal,
};
use tokio::{sync::watch, time::timeout};

use super::{
    JobError,
    page_events::LoadState,
    reset,
    stillness::{self, RendererMetrics},
};
use crate::{
    cdp::Session,
    egress::Traffic,
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
    traffic: &Traffic,
    state: &mut watch::Receiver<LoadState>,
) -> Result<(), JobError> {
    let before = state.borrow().documents;
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
                if let Some(refusal) = navigation_refusal(traffic, failure, host) {
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

/// Why a document did not come. Chromium sees a proxy that closes the connection; the proxy knows why.
pub(super) fn navigation_refusal(traffic: &Traffic, error_text: &str, host: &str) -> Option<Refusal> {
    traffic.refusal(host).or_else(|| refusal_for(error_text, host))
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
