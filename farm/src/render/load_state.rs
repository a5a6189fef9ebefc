//! The load state of a page, which the handler of its events records.

use std::time::Duration;

use chromiumoxide_cdp::cdp::js_protocol::runtime::ScriptId;
use futures::future;
use parking_lot::Mutex;
use platen_shared::format::WaitUntil;
use tokio::{sync::watch, time::Instant};

use super::page_record::PageRecord;

/// The time after which the network counts as idle although the main script of a worker is still loading: the
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

/// What the handler of a page's events records besides its load state.
#[derive(Debug, Default)]
pub(super) struct PageRecords {
    pub(super) scripts: Mutex<ParsedScripts>,
    pub(super) page: Mutex<PageRecord>,
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

/// What is known of a page: of its document, its navigation, its requests, and what else happens in it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoadState {
    pub(super) document: DocumentState,
    pub(super) navigation: NavigationState,
    pub(super) requests: RequestState,
    pub(super) activity: PageActivity,
}

/// The main document.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DocumentState {
    /// Number of documents that the main frame has had since the job began.
    pub(super) number: u32,
    /// `DOMContentLoaded` has fired.
    pub(super) parsed: bool,
    /// `load` has fired.
    pub(super) loaded: bool,
    /// HTTP status, if it was loaded by HTTP.
    pub(super) status: Option<u16>,
    /// Number of dialogs since the job began.
    pub(super) dialogs: u32,
}

/// The navigations of the main frame.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NavigationState {
    /// The main frame is about to have another document.
    pub(super) in_progress: bool,
    /// A navigation led to the document.
    pub(super) led_here: bool,
    /// One was cancelled: to `mailto:`, to a download, or to a response without content. If a document was loading, it has
    /// stopped and does not fire `load`.
    pub(super) cancelled: bool,
}

/// The requests of the page and its workers. They are numbered from 1 in the order in which they were sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RequestState {
    /// Number of those in progress.
    pub(super) open: usize,
    /// Number of these that are for main scripts of workers.
    pub(super) worker_scripts: usize,
    /// Number of those in progress that began before `load`.
    pub(super) early: usize,
    /// When the newest of the others began. Polls do not count.
    pub(super) newest_late: Option<Instant>,
    /// Number of all that were sent.
    pub(super) sent: u64,
    /// Number of the oldest one in progress whose response is drawn: a font, an image, a style sheet or a frame.
    pub(super) oldest_drawn: Option<u64>,
    /// Number of the newest such request.
    pub(super) newest_drawn: Option<u64>,
    /// When the page was loaded, or a request began or ended for which the network is not idle.
    pub(super) since: Option<Instant>,
}

/// What happens in the page besides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageActivity {
    /// The page uses something that virtual time does not stop: a worker, a socket or an event stream.
    pub(super) needs_real_time: bool,
    /// The page has something that may change the picture without a script: an animation, a frame or an
    /// animated image.
    pub(super) may_change: bool,
    pub(super) animations: u64,
    /// Sequence number of the latest `virtualTimeBudgetExpired` event.
    pub(super) budget_expired: u64,
}

impl NavigationState {
    /// A navigation that was requested does not begin. If a document was loading, a form has stopped that.
    pub(super) fn give_up(&mut self) {
        (self.in_progress, self.cancelled) = (false, true);
    }
}

impl RequestState {
    fn ignored(&self, now: Instant) -> usize {
        let is_over = self.since.is_none_or(|since| now >= since + WORKER_SCRIPT_TIMEOUT);
        if is_over { self.worker_scripts } else { 0 }
    }

    /// Whether none is in progress for which the network is not idle.
    fn are_idle(&self, now: Instant) -> bool {
        self.early <= self.ignored(now) && self.newest_late.is_none_or(|began| now >= began + MAX_OPEN_TIME)
    }

    /// Whether one whose response is drawn is in progress. Those up to the number `given_up` are ignored.
    pub(super) fn is_loading_drawn(&self, given_up: u64) -> bool {
        self.newest_drawn.is_some_and(|newest| newest > given_up)
    }
}

impl PageActivity {
    pub(super) fn animation_began(&mut self) {
        self.may_change = true;
        self.animations += 1;
    }
}

impl LoadState {
    /// The state of an empty document that has loaded.
    pub(super) fn empty() -> Self {
        let document = DocumentState { parsed: true, loaded: true, ..DocumentState::default() };
        Self { document, ..Self::default() }
    }

    /// The main frame has another document. `navigated` says whether a navigation led to it.
    pub(super) fn begin_document(&mut self, navigated: bool, status: Option<u16>) {
        let DocumentState { number, dialogs, .. } = self.document;
        self.document = DocumentState { number: number + 1, dialogs, status, ..DocumentState::default() };
        self.navigation = NavigationState { led_here: navigated, ..NavigationState::default() };
    }

    /// `load` has fired.
    pub(super) fn load(&mut self) {
        self.document.loaded = true;
        self.requests.since = Some(Instant::now());
    }

    pub(super) fn has_reached(&self, milestone: WaitUntil) -> bool {
        match milestone {
            WaitUntil::DomContentLoaded => self.document.parsed,
            WaitUntil::Load | WaitUntil::NetworkIdle => self.document.loaded,
        }
    }

    pub(super) fn is_between_documents(&self, milestone: WaitUntil) -> bool {
        let NavigationState { in_progress, led_here, cancelled } = self.navigation;
        in_progress || led_here && !cancelled && !self.has_reached(milestone)
    }

    /// Whether a request is in progress whose end is reported.
    pub(super) fn is_requesting(&self, now: Instant) -> bool {
        self.requests.open > self.requests.ignored(now)
    }

    /// Whether something happens that takes real time: a request is in progress, or something that virtual time does not stop.
    pub(super) fn takes_real_time(&self) -> bool {
        self.activity.needs_real_time || self.is_requesting(Instant::now())
    }

    /// Whether the page has something that may change it: an animation, a frame, a worker, a request in progress.
    pub(super) fn changes(&self) -> bool {
        self.activity.may_change || self.takes_real_time()
    }

    /// Whether the page is loaded and no request is in progress for which the network is not idle.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.is_loaded() && self.requests.are_idle(now)
    }

    /// Whether the page is loaded, or has stopped loading because it navigates to something that is not a page.
    pub(super) fn is_loaded(&self) -> bool {
        self.document.loaded || self.navigation.cancelled
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
        let with = |requests| LoadState { requests, ..LoadState::empty() };
        let none = RequestState { since: Some(now), ..RequestState::default() };
        let late = with(RequestState { open: 1, newest_late: Some(now), ..none });
        assert!(with(none).is_quiet(now) && !late.is_quiet(now));
        assert!(!late.is_quiet(now + MAX_OPEN_TIME - Duration::from_millis(1)));
        assert!(late.is_quiet(now + MAX_OPEN_TIME) && late.is_requesting(now + MAX_OPEN_TIME));
        let early = RequestState { open: 1, early: 1, ..none };
        assert!(!with(early).is_quiet(now + MAX_OPEN_TIME));
        let worker = with(RequestState { worker_scripts: 1, ..early });
        assert!(!worker.is_quiet(now) && worker.is_quiet(now + WORKER_SCRIPT_TIMEOUT));
        assert!(!LoadState { document: DocumentState::default(), ..with(none) }.is_quiet(now));
    }
}
