//! Resetting a page for another job of the same account.
//!
//! A page that can still change is navigated to an empty document. A static page stays as it is,
//! because the next job navigates it to a new empty document anyway.
//!
//! Invariant: a page that was reset has loaded no origin and has had no worker and no virtual time, and its
//! properties that outlive its documents are unchanged.

use std::collections::HashSet;

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        inspector::EventTargetCrashed,
        page::{
            EventJavascriptDialogOpening, EventLifecycleEvent, HandleJavaScriptDialogParams, NavigateParams,
            ResetNavigationHistoryParams,
        },
    },
    js_protocol::{
        heap_profiler::CollectGarbageParams,
        runtime::{EvaluateParams, GetHeapUsageParams},
    },
};
use platen_cdp::CdpError;

use super::job_error::JobError;
use crate::{browser::Browser, page::Page};

/// A page with a larger heap is closed, to free the memory. A new page costs less than the job that allocated
/// it.
const MAX_HEAP_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Jobs after which a page's garbage is collected. Without this 0.8 MiB accumulate per job; with it a page
/// stays at 31 MiB, and the cost is not measurable.
const COLLECT_INTERVAL_JOBS: u32 = 20;

/// Resets a page; false if it must not be reused. `is_static` says that the page cannot change any more.
pub(super) async fn reset(page: &mut Page, browser: &Browser, is_static: bool) -> Result<bool, JobError> {
    if let Some(frames) = &mut page.frames {
        frames.finish().await?;
    }
    if page.tainted || page.proxy.is_used() {
        return Ok(false);
    }
    let collect = page.jobs.is_multiple_of(COLLECT_INTERVAL_JOBS);
    if (collect || !is_static) && !navigate_to_empty(page).await? {
        return Ok(false);
    }
    let session = &page.session;
    if collect {
        session.send(&CollectGarbageParams {})?;
    }
    let heap = session.start(&GetHeapUsageParams {})?;
    if !is_static {
        if page.window_bounds(browser).await? != page.window {
            return Ok(false);
        }
        // `window.name` outlives documents, as does the history.
        let name = session.call(&EvaluateParams::new("window.name = '', history.length")).await?;
        match name.result.value.as_ref().and_then(serde_json::Value::as_u64) {
            Some(1) => {}
            Some(_) => {
                session.call(&ResetNavigationHistoryParams {}).await?;
            }
            None => return Ok(false),
        }
    }
    let heap = heap.await?;
    Ok(!page.proxy.is_used()
        && heap.total_size + heap.embedder_heap_used_size + heap.backing_storage_size < MAX_HEAP_BYTES)
}

/// Navigates a page to an empty document and waits for the `load` event with that document's loader id, so
/// that it is not mistaken for that of another document. False if the page does something that taints it.
pub(super) async fn navigate_to_empty(page: &mut Page) -> Result<bool, JobError> {
    let navigate = NavigateParams::new("about:blank");
    let mut navigating = page.session.start(&navigate)?;
    let (mut loaded, mut expected) = (HashSet::new(), None);
    loop {
        if expected.as_ref().is_some_and(|id| loaded.contains(id)) {
            return Ok(true);
        }
        tokio::select! {
            answer = &mut navigating, if expected.is_none() => {
                let Some(id) = answer?.loader_id else { return Ok(false) };
                expected = Some(id);
            }
            event = page.events.next() => {
                let event = event.ok_or(JobError::Cdp(CdpError::PageGone))?;
                if event.is::<EventLifecycleEvent>() {
                    let lifecycle: EventLifecycleEvent = event.parse()?;
                    if lifecycle.name == "load" && *lifecycle.frame_id.inner() == page.main_frame {
                        loaded.insert(lifecycle.loader_id);
                    }
                } else if event.is::<EventJavascriptDialogOpening>() {
                    page.session.send(&HandleJavaScriptDialogParams::new(true))?;
                } else if super::page_events::taints(&event) {
                    return Ok(false);
                } else if event.is::<EventTargetCrashed>() {
                    return Err(JobError::Crashed);
                }
            }
        }
    }
}
