//! The events of a page while a job runs: its dialogs are answered, and how far it has loaded, what it
//! requests and whether it is alive is recorded.
//!
//! Invariant: a dialog never waits for the job's own steps, nor the other way round. The handler runs
//! beside them, in the same future: when one is dropped, so is the other.

mod messages;

use std::collections::HashMap;

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        animation::EventAnimationCreated,
        emulation::EventVirtualTimeBudgetExpired,
        inspector::EventTargetCrashed,
        network::{
            self, EventLoadingFailed, EventLoadingFinished, EventRequestWillBeSent, EventResponseReceived,
            EventWebSocketCreated, EventWebTransportCreated,
        },
        page::{
            EventFrameAttached, EventFrameStoppedLoading, EventJavascriptDialogOpening, EventLifecycleEvent,
            HandleJavaScriptDialogParams,
        },
        target::{EventAttachedToTarget, EventDetachedFromTarget, SessionId},
    },
    js_protocol::runtime::RunIfWaitingForDebuggerParams,
};
use tokio::{sync::watch, time::Instant};
use url::Url;

use self::messages::{AttachedSession, Dialog, Failed, Finished, Lifecycle, Received, Response, Sent};
use super::{JobError, load_state::LoadState, navigation_error::navigation_refusal, still_image};
use crate::{
    cdp::{CdpError, Event, Events, Session},
    egress::JobEgress,
    page::auto_attach,
};

/// Handles the events of one page during one job.
pub(super) struct PageEventHandler<'a> {
    session: &'a Session,
    events: &'a mut Events,
    main_frame: &'a str,
    /// Set when the page does what no reset is known to undo.
    tainted: &'a mut bool,
    /// The host to name when the main document cannot be fetched: the job's own, because the target of
    /// a redirect is not for the caller to learn.
    job_host: Option<&'a str>,
    traffic: &'a JobEgress,
    state: watch::Sender<LoadState>,
    requests: HashMap<String, Request>,
    /// The latest request for a main document.
    document: Option<Document>,
}

/// A request in progress.
struct Request {
    /// The session of the worker that sent it; none if the page did.
    worker: Option<String>,
    is_worker_script: bool,
    /// Its number, if it is for something that is drawn.
    drawn: Option<u64>,
}

/// A request for a main document.
struct Document {
    id: String,
    /// Its URL before redirects.
    first: String,
    /// Its URL after the latest redirect.
    last: String,
}

/// Stands for a host in a message where the page, not the caller, chose it.
const UNNAMED_HOST: &str = "the page's destination";

impl<'a> PageEventHandler<'a> {
    /// A handler for a page that shows an empty document. `job_host` is the host of the job's URL.
    pub(super) fn new(
        session: &'a Session,
        events: &'a mut Events,
        main_frame: &'a str,
        tainted: &'a mut bool,
        job_host: Option<&'a str>,
        traffic: &'a JobEgress,
    ) -> (Self, watch::Receiver<LoadState>) {
        let (state, watched) = watch::channel(LoadState::new(Instant::now()));
        let handler = Self {
            session,
            events,
            main_frame,
            tainted,
            job_host,
            traffic,
            state,
            requests: HashMap::new(),
            document: None,
        };
        (handler, watched)
    }

    /// Handles events for as long as it is polled; returns only what ends the job.
    pub(super) async fn run(mut self) -> JobError {
        loop {
            let Some(event) = self.events.next().await else { return JobError::Cdp(CdpError::PageGone) };
            if let Err(error) = self.on_event(&event) {
                return error;
            }
        }
    }

    fn on_event(&mut self, event: &Event) -> Result<(), JobError> {
        if !*self.tainted && taints(event)? {
            *self.tainted = true;
        }
        if event.is::<EventLifecycleEvent>() {
            self.on_lifecycle(&event.parse()?);
        } else if event.is::<EventRequestWillBeSent>() {
            self.on_request(event.worker(), &event.parse()?);
        } else if event.is::<EventResponseReceived>() {
            self.on_response(&event.parse()?);
        } else if event.is::<EventLoadingFinished>() {
            self.on_request_end(event.parse::<Finished<'_>>()?.id);
        } else if event.is::<EventLoadingFailed>() {
            let failed: Failed<'_> = event.parse()?;
            self.on_failure(&failed)?;
            self.on_request_end(failed.id);
        } else if event.is::<EventVirtualTimeBudgetExpired>() {
            self.state.send_modify(|state| state.budget_expired = event.sequence());
        } else if event.is::<EventAttachedToTarget>() {
            self.on_worker(event.parse::<AttachedSession>()?.id)?;
        } else if event.is::<EventDetachedFromTarget>() {
            let session = event.parse::<AttachedSession>()?.id;
            self.requests.retain(|_, request| request.worker.as_deref() != Some(session.as_ref()));
            self.note_requests();
        } else if event.is::<EventFrameStoppedLoading>() {
            // Wakes up who waits for `load`, which comes before this event or not at all.
            self.state.send_modify(|_| {});
        } else if event.is::<EventJavascriptDialogOpening>() {
            let dialog: Dialog<'_> = event.parse()?;
            // There is no user to agree to anything; but an alert only has to be seen, and a page that
            // is left may be left.
            let accept = matches!(dialog.kind, "alert" | "beforeunload");
            self.session.send(&HandleJavaScriptDialogParams::new(accept))?;
            self.state.send_modify(|state| state.dialogs += 1);
        } else if event.is::<EventTargetCrashed>() {
            return Err(JobError::Crashed);
        } else if event.is::<EventAnimationCreated>() || event.is::<EventFrameAttached>() {
            self.state.send_modify(|state| state.may_change = true);
        }
        if needs_real_time(event) {
            self.state.send_modify(|state| state.needs_real_time = true);
        }
        Ok(())
    }

    fn on_lifecycle(&mut self, event: &Lifecycle<'_>) {
        if event.frame != self.main_frame {
            return;
        }
        let now = Instant::now();
        match event.name {
            "init" => {
                self.requests.retain(|_, request| request.worker.is_some());
                self.state.send_modify(|state| {
                    state.documents += 1;
                    (state.parsed, state.loaded, state.navigation_cancelled) = (false, false, false);
                });
                self.note_requests();
            }
            "DOMContentLoaded" => self.state.send_modify(|state| state.parsed = true),
            "load" => self.state.send_modify(|state| {
                state.loaded = true;
                state.since = now;
            }),
            _ => {}
        }
    }

    fn on_request(&mut self, worker: Option<&str>, sent: &Sent<'_>) {
        let url = &sent.request.url;
        let kind = sent.kind.unwrap_or_default();
        if worker.is_none() && kind == "Document" && sent.frame == Some(self.main_frame) {
            self.on_document(sent.id, url);
        }
        // What a page holds open on purpose is not waited for.
        if kind == "EventSource" {
            self.state.send_modify(|state| state.needs_real_time = true);
            return;
        }
        // Chromium reports the main script of a worker on its page's session, as of no document.
        let is_worker_script = worker.is_none() && sent.loader.is_empty();
        let may_change = match kind {
            "Image" => url.starts_with("data:") && !still_image::is_still(url),
            "Document" => sent.frame != Some(self.main_frame),
            "Stylesheet" | "Font" | "Ping" => false,
            _ => true,
        };
        self.state.send_modify(|state| {
            state.may_change |= may_change;
            state.needs_real_time |= is_worker_script;
        });
        // Such a script is never reported as finished if it comes from memory.
        if is_worker_script && !url.starts_with("http") {
            return;
        }
        let number = self.state.borrow().sent + 1;
        let is_drawn = worker.is_none()
            && (matches!(kind, "Font" | "Image" | "Stylesheet")
                || kind == "Document" && sent.frame != Some(self.main_frame));
        // A redirect has the id of its request.
        let first = self.requests.get(sent.id).and_then(|request| request.drawn);
        let drawn = is_drawn.then_some(first.unwrap_or(number));
        let request = Request { worker: worker.map(ToOwned::to_owned), is_worker_script, drawn };
        self.requests.insert(sent.id.to_owned(), request);
        self.state.send_modify(|state| state.sent = number);
        self.note_requests();
    }

    fn on_response(&mut self, received: &Received<'_>) {
        let Response { mime_type, url, headers } = &received.response;
        let may_change = match received.kind.unwrap_or_default() {
            // Of the other formats that pages use, each has an animated form.
            "Image" => !url.starts_with("data:") && !matches!(mime_type.as_ref(), "image/jpeg" | "image/bmp"),
            "Document" => {
                mime_type != "text/html"
                    || headers.keys().any(|name| name.eq_ignore_ascii_case("refresh"))
                    || url.contains('#')
            }
            _ => false,
        };
        if may_change {
            self.state.send_modify(|state| state.may_change = true);
        }
    }

    fn on_request_end(&mut self, id: &str) {
        if self.requests.remove(id).is_some() {
            self.note_requests();
        }
    }

    fn on_worker(&mut self, id: SessionId) -> Result<(), JobError> {
        let worker = self.session.worker(id);
        worker.send(&network::EnableParams {
            max_total_buffer_size: Some(0),
            max_resource_buffer_size: Some(0),
            ..Default::default()
        })?;
        worker.send(&auto_attach())?;
        Ok(worker.send(&RunIfWaitingForDebuggerParams {})?)
    }

    fn note_requests(&mut self) {
        let requests = self.requests.len();
        let worker_scripts = self.requests.values().filter(|request| request.is_worker_script).count();
        let drawn = || self.requests.values().filter_map(|request| request.drawn);
        let (oldest, newest) = (drawn().min(), drawn().max());
        self.state.send_modify(|state| {
            (state.requests, state.worker_scripts) = (requests, worker_scripts);
            (state.oldest_drawn, state.newest_drawn) = (oldest, newest);
            state.since = Instant::now();
        });
    }

    fn on_document(&mut self, id: &str, url: &str) {
        self.traffic.document_requested(url);
        match &mut self.document {
            Some(document) if document.id == id => url.clone_into(&mut document.last),
            document => {
                *document = Some(Document { id: id.to_owned(), first: url.to_owned(), last: url.to_owned() });
            }
        }
    }

    /// A page whose main document does not come, or not whole, is not the page that was asked for.
    fn on_failure(&self, failed: &Failed<'_>) -> Result<(), JobError> {
        let Some(document) = self.document.as_ref().filter(|document| document.id == failed.id) else {
            return Ok(());
        };
        if failed.cancelled {
            // The former document stays, and will not finish loading.
            self.state.send_modify(|state| state.navigation_cancelled = true);
            return Ok(());
        }
        let host = self.job_host.map(ToOwned::to_owned).or_else(|| {
            let first = Url::parse(&document.first).ok()?;
            first.domain().map(ToOwned::to_owned)
        });
        let host = host.unwrap_or_else(|| UNNAMED_HOST.to_owned());
        let Ok(last) = Url::parse(&document.last) else { return Ok(()) };
        let refusal = navigation_refusal(failed.error, &last, &host, self.traffic);
        refusal.map_or(Ok(()), |refusal| Err(JobError::Refused(refusal)))
    }
}

/// Whether an event shows an origin, a worker or a socket: something that may leave cookies, storage,
/// cache entries, credentials or running code.
pub(super) fn taints(event: &Event) -> Result<bool, CdpError> {
    if event.is::<EventRequestWillBeSent>() {
        let url = event.parse::<Sent<'_>>()?.request.url;
        return Ok(!["data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme)));
    }
    Ok(needs_real_time(event))
}

/// Whether an event shows something that runs outside of the page's own clock.
fn needs_real_time(event: &Event) -> bool {
    event.is::<EventWebSocketCreated>()
        || event.is::<EventWebTransportCreated>()
        || event.is::<EventAttachedToTarget>()
}
