//! The load state of a page, which the handler of its events records.

use std::time::Duration;

use chromiumoxide_cdp::cdp::js_protocol::runtime::ScriptId;
use futures::future;
use platen_shared::format::WaitUntil;
use tokio::{sync::watch, time::Instant};

/// After this time the network counts as idle although the main script of a worker is still loading: the
/// end of a shared worker's request is not reported in the session of the page.
const WORKER_SCRIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that began after `load` and is open for this long does not keep the network from being idle: a long poll or
/// a stream.
pub(super) const MAX_OPEN_TIME: Duration = Duration::from_secs(10);

/// Scripts that Chromium has reported (`background_work`).
#[derive(Debug, Default)]
pub(super) struct ParsedScripts {
    parsed: usize,
    /// Those whose text was not searched yet.
    pub(super) unsearched: Vec<ScriptId>,
}

/// A page with more scripts waits in real time, so that they need not be searched.
pub(super) const MAX_SCRIPTS: usize = 1_000;

impl ParsedScripts {
    /// Adds one, if it is known; false if there are too many.
    pub(super) fn add(&mut self, script: Option<ScriptId>) -> bool {
        self.parsed += 1;
        self.unsearched.extend(script);
        self.parsed <= MAX_SCRIPTS
    }
}

/// The state of the main document and of the requests of its page.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the facts are independent, and all combinations occur")]
pub(super) struct LoadState {
    /// Number of documents that the main frame has had since the job began.
    pub(super) documents: u32,
    /// `DOMContentLoaded` has fired in the document.
    pub(super) parsed: bool,
    /// `load` has fired in the document.
    pub(super) loaded: bool,
    /// HTTP status of the document, if it was loaded by HTTP.
    pub(super) page_status: Option<u16>,
    /// A navigation of the main frame was cancelled: to `mailto:`, to a download, or to a response without
    /// content. If a document was loading, it has stopped and does not fire `load`.
    pub(super) navigation_cancelled: bool,
    /// The main frame is about to have another document.
    pub(super) navigating: bool,
    /// A navigation led to the document.
    pub(super) navigated: bool,
    pub(super) dialogs: u32,
    /// Number of requests in progress, of the page and its workers.
    pub(super) requests: usize,
    /// Number of these that are for main scripts of workers.
    pub(super) worker_scripts: usize,
    /// Number of the requests in progress that began before `load`.
    pub(super) early_requests: usize,
    /// When the newest of the others began. Polls do not count.
    pub(super) newest_late_request: Option<Instant>,
    /// Number of requests that the page and its workers have sent.
    pub(super) sent: u64,
    /// Number of the oldest request in progress whose response is drawn: a font, an image, a style sheet or
    /// a frame. Requests are numbered from 1 in the order in which they were sent.
    pub(super) oldest_drawn: Option<u64>,
    /// Number of the newest such request.
    pub(super) newest_drawn: Option<u64>,
    /// When the page was loaded, or a request began or ended for which the network is not idle.
    pub(super) since: Option<Instant>,
    /// The page uses something that virtual time does not stop: a worker, a socket or an event stream.
    pub(super) needs_real_time: bool,
    /// The page has something that may change the picture without a script: an animation, a frame or an
    /// animated image.
    pub(super) may_change: bool,
    pub(super) animations: u64,
    /// Sequence number of the latest `virtualTimeBudgetExpired` event.
    pub(super) budget_expired: u64,
}

impl LoadState {
    /// The state of an empty document that has loaded.
    pub(super) fn empty() -> Self {
        Self { parsed: true, loaded: true, ..Self::default() }
    }

    pub(super) fn has_reached(&self, milestone: WaitUntil) -> bool {
        match milestone {
            WaitUntil::DomContentLoaded => self.parsed,
            WaitUntil::Load | WaitUntil::NetworkIdle => self.loaded,
        }
    }

    pub(super) fn is_between_documents(&self, milestone: WaitUntil) -> bool {
        self.navigating || self.navigated && !self.navigation_cancelled && !self.has_reached(milestone)
    }

    /// Whether a request is in progress whose end is reported.
    pub(super) fn is_requesting(&self, now: Instant) -> bool {
        self.requests > self.ignored_requests(now)
    }

    fn ignored_requests(&self, now: Instant) -> usize {
        let is_over = self.since.is_none_or(|since| now >= since + WORKER_SCRIPT_TIMEOUT);
        if is_over { self.worker_scripts } else { 0 }
    }

    /// Whether a request whose response is drawn is in progress. Requests up to the number `given_up` are
    /// ignored.
    pub(super) fn is_loading_drawn(&self, given_up: u64) -> bool {
        self.newest_drawn.is_some_and(|newest| newest > given_up)
    }

    /// Whether the page is loaded and no request is in progress for which the network is not idle.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.is_loaded()
            && self.early_requests <= self.ignored_requests(now)
            && self.newest_late_request.is_none_or(|began| now >= began + MAX_OPEN_TIME)
    }

    /// Whether the page is loaded, or has stopped loading because it navigates to something that is not a page.
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded || self.navigation_cancelled
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_after_load_counts_for_ten_seconds() {
        let now = Instant::now();
        let loaded = LoadState { since: Some(now), ..LoadState::empty() };
        let late = LoadState { requests: 1, newest_late_request: Some(now), ..loaded };
        assert!(loaded.is_quiet(now) && !late.is_quiet(now));
        assert!(!late.is_quiet(now + MAX_OPEN_TIME - Duration::from_millis(1)));
        assert!(late.is_quiet(now + MAX_OPEN_TIME) && late.is_requesting(now + MAX_OPEN_TIME));
        let early = LoadState { requests: 1, early_requests: 1, ..loaded };
        assert!(!early.is_quiet(now + MAX_OPEN_TIME));
        let worker = LoadState { worker_scripts: 1, ..early };
        assert!(!worker.is_quiet(now) && worker.is_quiet(now + WORKER_SCRIPT_TIMEOUT));
        assert!(!LoadState { loaded: false, ..loaded }.is_quiet(now));
    }
}
