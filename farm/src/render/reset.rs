//! Making a page as good as new for the next job of the same account.
//!
//! Invariant: a page that passes has a fresh document, realm and history; it has not been near an
//! origin, a worker or a socket (the attendant saw to that), so there is no cookie, no storage, no
//! cache, no credential and no permission that could be left. Whatever is not certain does not pass.

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
use serde::Deserialize;

use super::JobError;
use crate::{cdp::CdpError, clock::Clock, page::Page};

/// A page on which more than this is left was used for something large. Opening another one costs
/// less than such a page has cost.
const MOST_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Jobs after which a page's garbage is collected. Left alone, the engine lets 0.8 MiB a job pile up;
/// collecting every twentieth time keeps a page at 31 MiB and costs nothing that can be measured.
const COLLECT_EVERY: u32 = 20;

/// Resets a page; false when it must not be used again. No frame is drawn meanwhile, nor is one
/// under way.
pub(super) async fn reset(page: &mut Page) -> Result<bool, JobError> {
    if let Some(frames) = &page.frames {
        frames.finished().await;
    }
    let clock_known = page.clock.as_ref().is_none_or(Clock::is_known);
    if page.touched || page.gate.is_used() || !clock_known || !blank(page).await? {
        return Ok(false);
    }
    let session = &page.session;
    if page.jobs.is_multiple_of(COLLECT_EVERY) {
        session.send(&CollectGarbageParams {})?;
    }
    let heap = session.start(&GetHeapUsageParams {})?;
    // The one property of a page that outlives its documents, and the only trace of what is left.
    let name = session.call(&EvaluateParams::new("window.name = '', history.length")).await?;
    match name.result.value.as_ref().and_then(serde_json::Value::as_u64) {
        Some(1) => {}
        Some(_) => {
            session.call(&ResetNavigationHistoryParams {}).await?;
        }
        None => return Ok(false),
    }
    let heap = heap.await?;
    Ok(!page.gate.is_used()
        && heap.total_size + heap.embedder_heap_used_size + heap.backing_storage_size < MOST_BYTES)
}

/// Brings the empty document, and waits until it is there and not only the job's own doing.
async fn blank(page: &mut Page) -> Result<bool, JobError> {
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
                wanted = Some(loader.inner().clone());
            }
            event = page.events.next() => {
                let event = event.ok_or(JobError::Cdp(CdpError::PageGone))?;
                if event.is::<EventLifecycleEvent>() {
                    let lifecycle: Lifecycle = event.parse()?;
                    if lifecycle.name == "load" && lifecycle.frame == page.main_frame {
                        arrived.insert(lifecycle.loader);
                    }
                } else if event.is::<EventJavascriptDialogOpening>() {
                    page.session.send(&HandleJavaScriptDialogParams::new(true))?;
                } else if super::attendant::touches(&event)? {
                    return Ok(false);
                } else if event.is::<EventTargetCrashed>() {
                    return Err(JobError::Crashed);
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Lifecycle {
    #[serde(rename = "frameId")]
    frame: String,
    #[serde(rename = "loaderId")]
    loader: String,
    name: String,
}
