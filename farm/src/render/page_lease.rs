//! A page that is leased to one job, and its reset for another job of the same account.
//!
//! A page that can still change or has an address is navigated to an empty document. Another page stays as it is,
//! because the next job navigates it to a new empty document anyway. That job also removes what assets have left, because until
//! the document has gone it could load some again.
//!
//! Invariant: a page that is not released for reuse is closed, however the job ends, and the job's browser is freed only
//! after that. A page that was reset has loaded nothing but assets and has had no worker and no virtual time, and its properties
//! that outlive its documents are unchanged. If its documents had addresses, they had no scripts and nothing of them came from the
//! network.

use std::{collections::HashSet, time::Duration};

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        network::{ClearBrowserCacheParams, ClearBrowserCookiesParams, SetCacheDisabledParams},
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
use platen_cdp::{CdpError, Session};
use platen_shared::{
    id::AccountId,
    job::{RenderJob, Source},
};
use tokio::{runtime::Handle, time::timeout};

use super::{header_templates, static_page::may_act};
use crate::{
    browser::Browser,
    error::JobError,
    page::{Page, is_crash},
    pool::{Lease, PageRequest},
};

/// A reset takes 10 ms. A page that takes longer than this is closed.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a job may use a page that its account has used before, and leave it for the next one: its document has no address, or
/// one of its own where nothing can run. A script there could set a cookie for the domain of all such addresses.
pub(crate) fn may_reuse_page(job: &RenderJob) -> bool {
    let Source::Html(markup) = &job.source else { return false };
    let options = &job.options;
    let texts =
        || header_templates::texts(options).into_iter().map(|(_, html)| html).chain([markup.as_str()]);
    // The style sheet of the job is added by a script, so it would not be known whether another one has run.
    let runs_nothing =
        || options.css.is_none() && options.wait_for_function.is_none() && !texts().any(may_act);
    !job.has_address() || options.has_own_address() && runs_nothing()
}

/// A leased page; closed when dropped.
#[derive(Debug)]
pub(super) struct PageLease {
    /// `None` after the lease was dropped or released.
    held: Option<(Page, Lease)>,
    runtime: Handle,
}

impl PageLease {
    /// Takes an idle page of the browser or opens one. Cancellation-safe: the opening then continues in the
    /// background, and the page is closed.
    pub(super) async fn take(pooled: Lease, request: &PageRequest) -> Result<Self, JobError> {
        let runtime = Handle::current();
        if let Some(page) = pooled.idle_page(request) {
            return Ok(Self { held: Some((page, pooled)), runtime });
        }
        let opening = tokio::spawn(async move {
            let page = pooled.open_for_job().await?;
            Ok(Self { held: Some((page, pooled)), runtime })
        });
        opening.await.map_err(JobError::Opening)?
    }

    pub(super) fn page(&mut self) -> (&mut Page, &Lease) {
        let (page, pooled) = self.held.as_mut().expect("held until dropped or released");
        (page, pooled)
    }

    /// Ends the lease of a page that may be reused: if it is worth keeping for the account's next job, the
    /// page is reset in the background. `is_static` says that the page cannot change any more.
    pub(super) fn release(mut self, account: AccountId, is_static: bool) {
        let is_kept = |(page, pooled): &mut (Page, Lease)| pooled.is_worth_keeping(&account, page);
        let Some((mut page, pooled)) = self.held.take_if(is_kept) else { return };
        self.runtime.spawn(async move {
            let resetting = reset(&mut page, &pooled.browser, is_static);
            if let Ok(Ok(Some(heap_bytes))) = timeout(RESET_TIMEOUT, resetting).await {
                pooled.keep(account, page, heap_bytes);
            } else {
                pooled.close(page).await;
            }
        });
    }
}

impl Drop for PageLease {
    fn drop(&mut self) {
        if let Some((page, pooled)) = self.held.take() {
            self.runtime.spawn(async move { pooled.close(page).await });
        }
    }
}

/// A page with a larger heap is closed, to free the memory. A new page costs less than the job that allocated
/// it.
const MAX_HEAP_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Jobs after which a page's garbage is collected. Without this 0.8 MiB accumulate per job; with it a page
/// stays at 31 MiB, and the cost is not measurable.
const COLLECT_INTERVAL_JOBS: u32 = 20;

/// Resets a page and returns the bytes of its heap; `None` if it must not be reused. `is_static` says that the page cannot
/// change any more.
pub(super) async fn reset(
    page: &mut Page,
    browser: &Browser,
    is_static: bool,
) -> Result<Option<u64>, JobError> {
    if let Some(frames) = &mut page.frames {
        frames.finish().await?;
    }
    let collect = page.jobs.is_multiple_of(COLLECT_INTERVAL_JOBS);
    if collect || !is_static {
        navigate_to_empty(page).await?;
    }
    if page.tainted {
        return Ok(None);
    }
    let session = &page.session;
    if collect {
        session.send(&CollectGarbageParams {})?;
    }
    let heap = session.start(&GetHeapUsageParams {})?;
    if !is_static {
        if page.window_bounds(browser).await? != page.window {
            return Ok(None);
        }
        // `window.name` outlives documents, as does the history.
        let name = session.call(&EvaluateParams::new("window.name = '', history.length")).await?;
        match name.result.value.as_ref().and_then(serde_json::Value::as_u64) {
            Some(1) => {}
            Some(_) => {
                session.call(&ResetNavigationHistoryParams {}).await?;
            }
            None => return Ok(None),
        }
    }
    let heap = heap.await?;
    let bytes = heap.total_size + heap.embedder_heap_used_size + heap.backing_storage_size;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of bytes")]
    let bytes = (!page.proxy.was_used_without_job() && bytes < MAX_HEAP_BYTES).then_some(bytes as u64);
    Ok(bytes)
}

/// Removes what assets leave beyond their document: cookies, and hosts that require TLS (HSTS), which belong to the browser
/// context; and themselves, in the memory of the renderer. The rest of them is keyed by the opaque origin of the document (see
/// `--enable-features` in `browser/command.rs`).
pub(super) async fn forget_assets(session: &Session) -> Result<(), CdpError> {
    // Evicts what the renderer keeps.
    session.send(&SetCacheDisabledParams::new(true))?;
    session.send(&SetCacheDisabledParams::new(false))?;
    let cookies = session.start(&ClearBrowserCookiesParams {})?;
    // Removes the hosts with HSTS as well.
    session.call(&ClearBrowserCacheParams {}).await?;
    cookies.await?;
    Ok(())
}

/// Navigates a page to an empty document and waits for the `load` event with that document's loader id, so
/// that it is not mistaken for that of another document. Sets `tainted` if the document before it does something meanwhile that
/// taints the page.
///
/// # Errors
/// [`JobError::NoPage`] if Chromium does not navigate.
pub(super) async fn navigate_to_empty(page: &mut Page) -> Result<(), JobError> {
    let navigate = NavigateParams::new("about:blank");
    let mut navigating = page.session.start(&navigate)?;
    let (mut loaded, mut expected) = (HashSet::new(), None);
    loop {
        if expected.as_ref().is_some_and(|id| loaded.contains(id)) {
            return Ok(());
        }
        tokio::select! {
            answer = &mut navigating, if expected.is_none() => {
                expected = Some(answer?.loader_id.ok_or(JobError::NoPage)?);
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
                } else if is_crash(&event) {
                    return Err(JobError::Crashed);
                }
                page.tainted |= super::page_events::taints(&event);
            }
        }
    }
}
