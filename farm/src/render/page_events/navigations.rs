//! The navigations of a page's main frame.
//!
//! Chromium reports one as scheduled, requested and started, in this order, but not always all three, and its end as a
//! new document, or as that the frame has stopped loading. Navigations within the document have no such events in
//! between.

use chromiumoxide_cdp::cdp::browser_protocol::{
    fetch::{self, ContinueRequestParams, EventRequestPaused, FailRequestParams, RequestPattern},
    network::{ErrorReason, ResourceType},
};
use platen_cdp::{CdpError, Event, Session};

/// Navigations that a page may make after the document of its job. It then stays as it is.
pub(in crate::render) const MAX_NAVIGATIONS: u32 = 5;

/// The navigation of the main frame that is in progress, and the number of those that led to a document.
#[derive(Debug)]
pub(super) struct Navigations {
    is_scheduled: bool,
    /// The renderer has requested it, and the browser process has not started it yet.
    is_requested: bool,
    is_started: bool,
    /// How many may still lead to a document.
    left: u32,
}

impl Navigations {
    /// `has_url` says that the job's document is the result of a navigation.
    pub(super) fn new(has_url: bool) -> Self {
        Self {
            is_scheduled: false,
            is_requested: false,
            is_started: false,
            left: MAX_NAVIGATIONS + u32::from(has_url),
        }
    }

    /// Whether the main frame navigates after an event; `None` if the event is about something else.
    pub(super) fn change(&mut self, event: &Event, main_frame: &str) -> Option<bool> {
        // The generated types lack some of these events, which the protocol calls deprecated.
        let name = event.method().strip_prefix("Page.frame")?;
        if ![
            "ScheduledNavigation",
            "ClearedScheduledNavigation",
            "RequestedNavigation",
            "StartedNavigating",
            "StoppedLoading",
        ]
        .contains(&name)
        {
            return None;
        }
        let fields = event.fields();
        if fields["frameId"] != main_frame {
            return None;
        }
        match name {
            // A refresh after some seconds shows its page until then.
            "ScheduledNavigation" => {
                self.is_scheduled = fields["delay"].as_f64().is_some_and(|seconds| seconds < 1.0);
            }
            "ClearedScheduledNavigation" => self.is_scheduled = false,
            "RequestedNavigation" => self.is_requested |= fields["disposition"] == "currentTab",
            "StartedNavigating" => {
                let kind = fields["navigationType"].as_str();
                if !matches!(kind, Some("sameDocument" | "historySameDocument")) {
                    (self.is_requested, self.is_started) = (false, true);
                }
            }
            // It may be about the document before, if the browser process has started no navigation since.
            _ => self.is_started = false,
        }
        Some(self.left > 0 && (self.is_scheduled || self.is_requested || self.is_started))
    }

    /// The main frame has a new document. Whether a navigation led to it: `document.open` and the markup of a job do not
    /// navigate.
    pub(super) fn committed(&mut self) -> bool {
        let navigated = self.is_started;
        self.left = self.left.saturating_sub(u32::from(navigated));
        self.ended();
        navigated
    }

    /// Whether further navigations are cancelled.
    pub(super) fn are_over(&self) -> bool {
        self.left == 0
    }

    fn ended(&mut self) {
        (self.is_scheduled, self.is_requested, self.is_started) = (false, false, false);
    }
}

/// Makes further navigations fail, so that the page's document stays as it is and finishes loading.
pub(super) fn forbid(session: &Session) -> Result<(), CdpError> {
    let documents = RequestPattern { resource_type: Some(ResourceType::Document), ..Default::default() };
    session.send(&fetch::EnableParams { patterns: Some(vec![documents]), ..Default::default() })
}

/// Answers a request for a document after [`forbid`]. Frames may load theirs.
pub(super) fn on_paused(
    session: &Session,
    main_frame: &str,
    paused: &EventRequestPaused,
) -> Result<(), CdpError> {
    let id = paused.request_id.clone();
    if paused.frame_id.inner() == main_frame {
        session.send(&FailRequestParams::new(id, ErrorReason::Aborted))
    } else {
        session.send(&ContinueRequestParams::new(id))
    }
}
