//! What a page needs while a job runs: answers to its dialogs, and an eye on how far it has loaded,
//! where it went and whether it lives.
//!
//! Invariant: a dialog never waits for the job's own steps, nor the other way round. Runs beside
//! them, in the same future: when one is dropped, so is the other.

use std::{borrow::Cow, collections::HashSet};

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::EventVirtualTimeBudgetExpired,
    inspector::EventTargetCrashed,
    network::{
        EventLoadingFailed, EventLoadingFinished, EventRequestWillBeSent, EventWebSocketCreated,
        EventWebTransportCreated,
    },
    page::{EventJavascriptDialogOpening, EventLifecycleEvent, HandleJavaScriptDialogParams},
    target::EventAttachedToTarget,
};
use serde::Deserialize;
use tokio::{sync::watch, time::Instant};
use url::Url;

use super::JobError;
use crate::{
    cdp::{CdpError, Event, Events, Session},
    egress::Traffic,
};

/// How far the main document has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Documents the main frame has had, the empty one of before the job not counted.
    pub(super) documents: u32,
    /// The document is parsed.
    pub(super) parsed: bool,
    /// Its `load` event has fired.
    pub(super) loaded: bool,
    /// Requests under way.
    pub(super) requests: usize,
    /// Since when `loaded` and `requests` are what they are.
    pub(super) since: Instant,
    /// Workers or sockets are about, which keep the real time.
    pub(super) has_company: bool,
    /// How often time that was granted to the page has passed.
    pub(super) expired: u64,
}

impl Progress {
    /// An empty document that has been there for a while.
    pub(super) fn new(since: Instant) -> Self {
        Self { documents: 0, parsed: true, loaded: true, requests: 0, since, has_company: false, expired: 0 }
    }

    /// Whether everything that was asked for has come.
    pub(super) fn is_quiet(&self) -> bool {
        self.loaded && self.requests == 0
    }
}

/// Waits on one page, hand and foot.
pub(super) struct Attendant<'a> {
    session: &'a Session,
    events: &'a mut Events,
    main_frame: &'a str,
    /// Set when the page does what no reset is known to undo.
    touched: &'a mut bool,
    /// The host to name when the main document may not be fetched: the job's own, because a
    /// redirect's target is not for the caller to learn.
    job_host: Option<&'a str>,
    traffic: &'a Traffic,
    progress: watch::Sender<Progress>,
    requests: HashSet<String>,
    /// The latest request for a main document.
    document: Option<Document>,
}

/// A request for a main document.
struct Document {
    id: String,
    /// Where it went first.
    first: String,
    /// Where a redirect sent it last.
    last: String,
}

/// What stands for an address in a message: no message names one.
const NAMELESS: &str = "the page's destination";

impl<'a> Attendant<'a> {
    /// An attendant for a page that shows an empty document. `job_host` is the host of the job's URL.
    pub(super) fn new(
        session: &'a Session,
        events: &'a mut Events,
        main_frame: &'a str,
        touched: &'a mut bool,
        job_host: Option<&'a str>,
        traffic: &'a Traffic,
    ) -> (Self, watch::Receiver<Progress>) {
        let (progress, watched) = watch::channel(Progress::new(Instant::now()));
        let attendant = Self {
            session,
            events,
            main_frame,
            touched,
            job_host,
            traffic,
            progress,
            requests: HashSet::new(),
            document: None,
        };
        (attendant, watched)
    }

    /// Attends for as long as it is polled; returns only what ends the job.
    pub(super) async fn attend(mut self) -> JobError {
        loop {
            let Some(event) = self.events.next().await else { return JobError::Cdp(CdpError::PageGone) };
            if let Err(error) = self.on_event(&event) {
                return error;
            }
        }
    }

    fn on_event(&mut self, event: &Event) -> Result<(), JobError> {
        if !*self.touched && touches(event)? {
            *self.touched = true;
        }
        if event.is::<EventLifecycleEvent>() {
            self.on_lifecycle(&event.parse()?);
        } else if event.is::<EventRequestWillBeSent>() {
            let sent: Sent<'_> = event.parse()?;
            if sent.kind == Some("Document") && sent.frame == Some(self.main_frame) {
                self.on_document(sent.id, &sent.request.url);
            }
            self.requests.insert(sent.id.to_owned());
            self.note_requests();
        } else if event.is::<EventLoadingFinished>() || event.is::<EventLoadingFailed>() {
            let id = event.parse::<Request>()?.id;
            if event.is::<EventLoadingFailed>() {
                self.on_failure(&id)?;
            }
            self.requests.remove(&id);
            self.note_requests();
        } else if event.is::<EventVirtualTimeBudgetExpired>() {
            self.progress.send_modify(|progress| progress.expired += 1);
        } else if keeps_real_time(event) {
            self.progress.send_modify(|progress| progress.has_company = true);
        } else if event.is::<EventJavascriptDialogOpening>() {
            let dialog: Dialog = event.parse()?;
            // Nobody is there to say yes; but an alert wants only to be seen, and a page that is
            // leaving may leave.
            let accept = matches!(dialog.kind.as_str(), "alert" | "beforeunload");
            self.session.send(&HandleJavaScriptDialogParams::new(accept))?;
        } else if event.is::<EventTargetCrashed>() {
            return Err(JobError::Crashed);
        }
        Ok(())
    }

    fn on_lifecycle(&mut self, event: &Lifecycle) {
        if event.frame != self.main_frame {
            return;
        }
        let now = Instant::now();
        match event.name.as_str() {
            "init" => {
                self.requests.clear();
                self.progress.send_modify(|progress| {
                    progress.documents += 1;
                    (progress.parsed, progress.loaded) = (false, false);
                    (progress.requests, progress.since) = (0, now);
                });
            }
            "DOMContentLoaded" => self.progress.send_modify(|progress| progress.parsed = true),
            "load" => self.progress.send_modify(|progress| {
                progress.loaded = true;
                progress.since = now;
            }),
            _ => {}
        }
    }

    fn note_requests(&mut self) {
        let requests = self.requests.len();
        self.progress.send_modify(|progress| {
            progress.requests = requests;
            progress.since = Instant::now();
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

    /// A page that goes where it may not is no page.
    fn on_failure(&self, id: &str) -> Result<(), JobError> {
        let Some(document) = self.document.as_ref().filter(|document| document.id == id) else {
            return Ok(());
        };
        let Ok(last) = Url::parse(&document.last) else { return Ok(()) };
        let host = self.job_host.map(ToOwned::to_owned).or_else(|| {
            let first = Url::parse(&document.first).ok()?;
            first.domain().map(ToOwned::to_owned)
        });
        let host = host.unwrap_or_else(|| NAMELESS.to_owned());
        self.traffic.page_refusal(&last, &host).map_or(Ok(()), |refusal| Err(JobError::Refused(refusal)))
    }
}

/// Whether an event tells of an origin, a worker or a socket: of something that may leave cookies,
/// storage, cache entries, credentials or running code.
pub(super) fn touches(event: &Event) -> Result<bool, CdpError> {
    if event.is::<EventRequestWillBeSent>() {
        let url = event.parse::<Sent<'_>>()?.request.url;
        return Ok(!["data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme)));
    }
    Ok(keeps_real_time(event))
}

/// Whether an event tells of something that goes on outside of the page's own clock.
fn keeps_real_time(event: &Event) -> bool {
    event.is::<EventWebSocketCreated>()
        || event.is::<EventWebTransportCreated>()
        || event.is::<EventAttachedToTarget>()
}

#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(rename = "requestId")]
    id: &'a str,
    #[serde(borrow)]
    request: SentRequest<'a>,
    #[serde(rename = "frameId")]
    frame: Option<&'a str>,
    #[serde(rename = "type")]
    kind: Option<&'a str>,
}

#[derive(Deserialize)]
struct SentRequest<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Lifecycle {
    #[serde(rename = "frameId")]
    frame: String,
    name: String,
}

#[derive(Deserialize)]
struct Request {
    #[serde(rename = "requestId")]
    id: String,
}

#[derive(Deserialize)]
struct Dialog {
    #[serde(rename = "type")]
    kind: String,
}
