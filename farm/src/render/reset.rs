//! What makes a page fit for another job of the same account.
//!
//! A page in which a script ran, or something else may go on, is left at an empty document at once. One
//! that stands still is left as it is: the next job navigates it to an empty document of its own anyway,
//! which is where its time begins.
//!
//! Invariant: a page that leaves here as clean has loaded no origin, has had no worker and no virtual
//! time, and no property of it that outlives its documents has been changed.

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

use super::JobError;
use crate::{browser::Browser, page::Page};

/// A page with a larger heap was used for something large. Opening another one costs less than such a
/// page has cost.
const MAX_HEAP_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Jobs after which a page's garbage is collected. Without it the engine lets 0.8 MiB a job accumulate;
/// collecting every twentieth time keeps a page at 31 MiB and costs nothing that can be measured.
const COLLECT_EVERY: u32 = 20;

/// Resets a page; false when it must not be used again. `is_still` says that nothing goes on in it.
pub(super) async fn reset(page: &mut Page, browser: &Browser, is_still: bool) -> Result<bool, JobError> {
    if let Some(frames) = &mut page.frames {
        frames.finish().await?;
    }
    if page.tainted || page.proxy.is_used() {
        return Ok(false);
    }
    let collect = page.jobs.is_multiple_of(COLLECT_EVERY);
    if (collect || !is_still) && !empty(page).await? {
        return Ok(false);
    }
    let session = &page.session;
    if collect {
        session.send(&CollectGarbageParams {})?;
    }
    let heap = session.start(&GetHeapUsageParams {})?;
    if !is_still {
        if page.window_bounds(browser).await? != page.window {
            return Ok(false);
        }
        // The one property of a page that outlives its documents, and what is left in the history.
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

/// Navigates a page to an empty document and waits for that document's own `load`, so that it is not
/// taken for the next one's; false when the page does something else that taints it.
pub(super) async fn empty(page: &mut Page) -> Result<bool, JobError> {
    let navigate = NavigateParams::new("about:blank");
    let mut navigating = page.session.start(&navigate)?;
    let (mut arrived, mut wanted) = (HashSet::new(), None);
    loop {
        if wanted.as_ref().is_some_and(|loader| arrived.contains(loader)) {
            return Ok(true);
        }
        tokio::select! {
            answer = &mut navigating, if wanted.is_none() => {
                let Some(loader) = answer?.loader_id else { return Ok(false) };
                wanted = Some(loader);
            }
            event = page.events.next() => {
                let event = event.ok_or(JobError::Cdp(CdpError::PageGone))?;
                if event.is::<EventLifecycleEvent>() {
                    let lifecycle: EventLifecycleEvent = event.parse()?;
                    if lifecycle.name == "load" && *lifecycle.frame_id.inner() == page.main_frame {
                        arrived.insert(lifecycle.loader_id);
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
