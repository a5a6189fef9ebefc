//! How far a page has loaded, as `page_events` sees it.

use std::time::Duration;

use tokio::time::Instant;

/// How long the main script of a worker may take to load before the network counts as idle without it:
/// a shared worker's request ends on no session that the page has.
const WORKER_SCRIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// How far the main document has come.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations occur")]
pub(super) struct LoadState {
    /// Documents the main frame has had, the empty one of before the job not counted.
    pub(super) documents: u32,
    /// The document is parsed.
    pub(super) parsed: bool,
    /// Its `load` event has fired.
    pub(super) loaded: bool,
    /// A navigation of the main frame was cancelled: to `mailto:`, to a download, to an answer without
    /// content. A document that was loading then has stopped, and will not fire `load`.
    pub(super) navigation_cancelled: bool,
    /// Dialogs that were answered.
    pub(super) dialogs: u32,
    /// Requests of the page and its workers in progress.
    pub(super) requests: usize,
    /// Of these, main scripts of workers.
    pub(super) worker_scripts: usize,
    /// Requests that the page has sent.
    pub(super) sent: u64,
    /// Number of the oldest request in progress for something that is drawn: a font, an image, a style
    /// sheet, a frame.
    pub(super) oldest_drawn: Option<u64>,
    /// Number of the newest of these.
    pub(super) newest_drawn: Option<u64>,
    /// When `loaded` or `requests` changed last.
    pub(super) since: Instant,
    /// Something runs outside of the page's own clock: a worker, a socket, an event stream.
    pub(super) needs_real_time: bool,
    /// Something was seen that may change the picture without a script: an animation, a frame, an
    /// animated image.
    pub(super) may_change: bool,
    /// Sequence number of the latest report that granted virtual time has passed.
    pub(super) budget_expired: u64,
}

impl LoadState {
    /// An empty document that has been there for a while.
    pub(super) fn new(since: Instant) -> Self {
        Self {
            documents: 0,
            parsed: true,
            loaded: true,
            navigation_cancelled: false,
            dialogs: 0,
            requests: 0,
            worker_scripts: 0,
            sent: 0,
            oldest_drawn: None,
            newest_drawn: None,
            since,
            needs_real_time: false,
            may_change: false,
            budget_expired: 0,
        }
    }

    /// Whether a request is in progress that can end.
    pub(super) fn is_requesting(&self, now: Instant) -> bool {
        let ignored = if now >= self.since + WORKER_SCRIPT_TIMEOUT { self.worker_scripts } else { 0 };
        self.requests > ignored
    }

    /// Whether a request for something that is drawn is in progress, but for those up to a number.
    pub(super) fn is_loading_drawn(&self, given_up: u64) -> bool {
        self.newest_drawn.is_some_and(|newest| newest > given_up)
    }

    /// Whether the page is loaded and nothing that it requested is missing.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        (self.loaded || self.navigation_cancelled) && !self.is_requesting(now)
    }
}
