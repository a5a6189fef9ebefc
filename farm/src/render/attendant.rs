//! What a page needs while a job runs: answers to its dialogs, leave for its requests, and an eye
//! on how far it has loaded and whether it lives.
//!
//! Invariant: a dialog or a held request never waits for the job's own steps, nor the other way
//! round. Runs beside them, in the same future: when one is dropped, so is the other.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::EventVirtualTimeBudgetExpired,
    fetch::{ContinueRequestParams, EventRequestPaused, FailRequestParams},
    inspector::EventTargetCrashed,
    network::{
        ErrorReason, EventLoadingFailed, EventLoadingFinished, EventRequestWillBeSent, EventWebSocketCreated,
        EventWebTransportCreated,
    },
    page::{EventJavascriptDialogOpening, EventLifecycleEvent, HandleJavaScriptDialogParams},
    target::EventAttachedToTarget,
};
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use platen_shared::refusal::Refusal;
use serde::Deserialize;
use tokio::{sync::watch, time::Instant};
use url::Url;

use super::JobError;
use crate::{
    cdp::{CdpError, Event, Events, Session},
    egress::{Egress, Judgement},
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
    egress: &'a Egress,
    progress: watch::Sender<Progress>,
    requests: HashSet<String>,
    judged: HashMap<String, Judgement>,
    held: HashMap<String, Vec<Held>>,
    judging: FuturesUnordered<BoxFuture<'a, (String, Judgement)>>,
}

/// A request that waits for a judgement.
struct Held {
    id: String,
    is_main_document: bool,
}

impl<'a> Attendant<'a> {
    /// An attendant for a page that shows an empty document. `job_host` is the host of the job's URL,
    /// which has been judged already.
    pub(super) fn new(
        session: &'a Session,
        events: &'a mut Events,
        main_frame: &'a str,
        touched: &'a mut bool,
        job_host: Option<&'a str>,
        egress: &'a Egress,
    ) -> (Self, watch::Receiver<Progress>) {
        let (progress, watched) = watch::channel(Progress::new(Instant::now()));
        let judged = job_host.map(|host| (host.to_owned(), Judgement::Allowed)).into_iter().collect();
        let attendant = Self {
            session,
            events,
            main_frame,
            touched,
            job_host,
            egress,
            progress,
            requests: HashSet::new(),
            judged,
            held: HashMap::new(),
            judging: FuturesUnordered::new(),
        };
        (attendant, watched)
    }

    /// Attends for as long as it is polled; returns only what ends the job.
    pub(super) async fn attend(mut self) -> JobError {
        loop {
            let done = tokio::select! {
                event = self.events.next() => match event {
                    Some(event) => self.on_event(&event),
                    None => return JobError::Cdp(CdpError::PageGone),
                },
                Some((host, judgement)) = self.judging.next() => self.on_judgement(host, judgement),
            };
            if let Err(error) = done {
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
        } else if event.is::<EventRequestPaused>() {
            self.on_request_paused(event.parse()?)?;
        } else if event.is::<EventRequestWillBeSent>() {
            self.requests.insert(event.parse::<Request>()?.id);
            self.note_requests();
        } else if event.is::<EventLoadingFinished>() || event.is::<EventLoadingFailed>() {
            self.requests.remove(&event.parse::<Request>()?.id);
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

    fn on_request_paused(&mut self, paused: Paused) -> Result<(), JobError> {
        let is_main_document = paused.kind == "Document" && paused.frame == self.main_frame;
        let held = Held { id: paused.id, is_main_document };
        let Some((url, host)) = Url::parse(&paused.request.url)
            .ok()
            .and_then(|url| url.host_str().map(ToOwned::to_owned).map(|host| (url, host)))
        else {
            return self.answer(&held, "", Judgement::NotFound);
        };
        if let Some(&judgement) = self.judged.get(&host) {
            return self.answer(&held, &host, judgement);
        }
        if let Some(others) = self.held.get_mut(&host) {
            others.push(held);
            return Ok(());
        }
        self.held.insert(host.clone(), vec![held]);
        let egress = self.egress;
        self.judging.push(Box::pin(async move { (host, egress.judge(&url).await) }));
        Ok(())
    }

    fn on_judgement(&mut self, host: String, judgement: Judgement) -> Result<(), JobError> {
        for held in self.held.remove(&host).unwrap_or_default() {
            self.answer(&held, &host, judgement)?;
        }
        self.judged.insert(host, judgement);
        Ok(())
    }

    fn answer(&self, held: &Held, host: &str, judgement: Judgement) -> Result<(), JobError> {
        let fail = |reason| self.session.send(&FailRequestParams::new(held.id.clone(), reason));
        match judgement {
            Judgement::Allowed => self.session.send(&ContinueRequestParams::new(held.id.clone()))?,
            Judgement::NotFound => fail(ErrorReason::NameNotResolved)?,
            Judgement::NotPublic if held.is_main_document => {
                let host = self.job_host.unwrap_or(host).to_owned();
                return Err(JobError::Refused(Refusal::AddressNotPublic { host }));
            }
            Judgement::NotPublic => fail(ErrorReason::AddressUnreachable)?,
        }
        Ok(())
    }
}

/// Whether an event tells of an origin, a worker or a socket: of something that may leave cookies,
/// storage, cache entries, credentials or running code.
pub(super) fn touches(event: &Event) -> Result<bool, CdpError> {
    if event.is::<EventRequestWillBeSent>() {
        let url = event.parse::<Sent<'_>>()?.request.url;
        return Ok(!["data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme)));
    }
    Ok(event.is::<EventRequestPaused>() || keeps_real_time(event))
}

/// Whether an event tells of something that goes on outside of the page's own clock.
fn keeps_real_time(event: &Event) -> bool {
    event.is::<EventWebSocketCreated>()
        || event.is::<EventWebTransportCreated>()
        || event.is::<EventAttachedToTarget>()
}

#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    request: SentRequest<'a>,
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

#[derive(Deserialize)]
struct Paused {
    #[serde(rename = "requestId")]
    id: String,
    request: PausedRequest,
    #[serde(rename = "frameId")]
    frame: String,
    #[serde(rename = "resourceType")]
    kind: String,
}

#[derive(Deserialize)]
struct PausedRequest {
    url: String,
}
