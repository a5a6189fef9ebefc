//! Loading the job's page.
//!
//! Invariant: the viewport is set before the page is loaded, so its first script reads the right size. The
//! time origin of the job's document (`performance.timeOrigin`) is within the job.

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::{ScreenOrientation, ScreenOrientationType, SetDeviceMetricsOverrideParams},
    page::{NavigateParams, SetDocumentContentParams},
};
use futures::future;
use platen_cdp::Session;
use platen_shared::job::{RenderJob, Source, Viewport};
use tokio::{sync::watch, task::yield_now, time::timeout};

use super::{
    elements,
    header_templates::{self, HeaderTemplates},
    job_error::JobError,
    load_state::LoadState,
    navigation_error::navigation_error,
    overrides,
    renderer_metrics::{self, RendererMetrics},
    reset,
};
use crate::{
    egress::JobEgress,
    page::{OPEN_TIMEOUT, Page},
};

/// Sets the viewport and, for markup, navigates to a new empty document; a URL has its own document. Returns
/// the page's metrics before the job, and its header and footer. An empty page answers immediately unless its browser hangs.
pub(super) async fn prepare(
    page: &mut Page,
    job: &RenderJob,
    browser_version: &str,
) -> Result<(RendererMetrics, Option<HeaderTemplates>), JobError> {
    let prepared = async {
        overrides::set(page, &job.options, browser_version).await?;
        let set = page.session.start(&device_metrics(&job.options.viewport))?;
        if matches!(job.source, Source::Html(_)) && !reset::navigate_to_empty(page).await? {
            return Err(JobError::NoPage);
        }
        elements::check_selectors(page, &job.options).await?;
        let templates = header_templates::convert(&page.session, &job.options).await?;
        let before = renderer_metrics::read(&page.session).await?;
        set.await?;
        Ok((before, templates))
    };
    timeout(OPEN_TIMEOUT, prepared).await.map_err(|_| JobError::Unresponsive)?
}

/// The viewport, and a screen of the same size. Without a screen of its own, a page has that of the browser
/// process, which other pages can turn (`screen.orientation.lock`).
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
        ..SetDeviceMetricsOverrideParams::new(
            width,
            height,
            viewport.device_scale_factor.get(),
            viewport.mobile,
        )
    }
}

/// Loads the page and returns when its document has started to load.
pub(super) async fn load(
    session: &Session,
    main_frame: &str,
    source: &Source,
    egress: &JobEgress,
    state: &mut watch::Receiver<LoadState>,
) -> Result<(), JobError> {
    let before = state.borrow().documents;
    egress.page_started.set();
    match source {
        Source::Html(html) => {
            let content = SetDocumentContentParams::new(main_frame.to_owned(), html.as_str());
            session.call(&content).await?;
        }
        Source::Url(url) => {
            let url = url.as_url();
            let answer = session.call(&NavigateParams::new(url.as_str())).await?;
            if let Some(failure) = answer.error_text.as_deref() {
                // Lets the event handler process the events before this answer, which contain the redirects.
                yield_now().await;
                let host = url.host_str().unwrap_or_default();
                if let Some(error) = navigation_error(failure, url, host, egress) {
                    tracing::debug!(failure, "page could not be loaded");
                    return Err(error);
                }
            }
        }
    }
    reach(state, |state| state.documents > before).await;
    Ok(())
}

/// Waits until `is_reached` is true for the state. Never completes if the event handler has ended: then the
/// job has ended as well.
pub(super) async fn reach(
    state: &mut watch::Receiver<LoadState>,
    is_reached: impl FnMut(&LoadState) -> bool,
) {
    if state.wait_for(is_reached).await.is_err() {
        future::pending::<()>().await;
    }
}
