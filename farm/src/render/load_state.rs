//! The load state of a page, which the handler of its events records.

use std::time::Duration;

use platen_shared::format::WaitUntil;
use tokio::time::Instant;

/// After this time the network counts as idle although the main script of a worker is still loading: the
/// end of a shared worker's request is not reported in the session of the page.
const WORKER_SCRIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of the main document and of the requests of its page.
#[derive(Debug, Clone, Copy)]
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
    /// Number of dialogs that were answered.
    pub(super) dialogs: u32,
    /// Number of requests in progress, of the page and its workers.
    pub(super) requests: usize,
    /// Number of these that are for main scripts of workers.
    pub(super) worker_scripts: usize,
    /// Number of requests that the page and its workers have sent.
    pub(super) sent: u64,
    /// Number of the oldest request in progress whose response is drawn: a font, an image, a style sheet or
    /// a frame. Requests are numbered from 1 in the order in which they were sent.
    pub(super) oldest_drawn: Option<u64>,
    /// Number of the newest such request.
    pub(super) newest_drawn: Option<u64>,
    /// When `loaded` or `requests` last changed.
    pub(super) since: Instant,
    /// The page uses something that virtual time does not stop: a worker, a socket or an event stream.
    pub(super) needs_real_time: bool,
    /// The page has something that may change the picture without a script: an animation, a frame or an
    /// animated image.
    pub(super) may_change: bool,
    /// Number of animations that were created.
    pub(super) animations: u64,
    /// Sequence number of the latest `virtualTimeBudgetExpired` event.
    pub(super) budget_expired: u64,
}

impl LoadState {
    /// The state of an empty document that has loaded.
    pub(super) fn new(since: Instant) -> Self {
        Self {
            documents: 0,
            parsed: true,
            loaded: true,
            page_status: None,
            navigation_cancelled: false,
            navigating: false,
            navigated: false,
            dialogs: 0,
            requests: 0,
            worker_scripts: 0,
            sent: 0,
            oldest_drawn: None,
            newest_drawn: None,
            since,
            needs_real_time: false,
            may_change: false,
            animations: 0,
            budget_expired: 0,
        }
    }

    /// Whether the document has reached a milestone.
    pub(super) fn has_reached(&self, milestone: WaitUntil) -> bool {
        match milestone {
            WaitUntil::DomContentLoaded => self.parsed,
            WaitUntil::Load | WaitUntil::NetworkIdle => self.loaded,
        }
    }

    /// Whether the page is on its way to another document.
    pub(super) fn is_between_documents(&self, milestone: WaitUntil) -> bool {
        self.navigating || self.navigated && !self.navigation_cancelled && !self.has_reached(milestone)
    }

    /// Whether a request is in progress whose end is reported.
    pub(super) fn is_requesting(&self, now: Instant) -> bool {
        let ignored = if now >= self.since + WORKER_SCRIPT_TIMEOUT { self.worker_scripts } else { 0 };
        self.requests > ignored
    }

    /// Whether a request whose response is drawn is in progress. Requests up to the number `given_up` are
    /// ignored.
    pub(super) fn is_loading_drawn(&self, given_up: u64) -> bool {
        self.newest_drawn.is_some_and(|newest| newest > given_up)
    }

    /// Whether the page is loaded and no request is in progress.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        (self.loaded || self.navigation_cancelled) && !self.is_requesting(now)
    }
}
