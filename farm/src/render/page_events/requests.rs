//! The requests of a page and its workers: what events say about them, which are in progress, and which of those keep the
//! network from being idle.
//!
//! Without `requestWillBeSent` a picture is taken too early, and without the end of a request a job waits until its deadline.
//! The generated types of these events fail on values that the farm does not read: on enums that Chromium extends
//! (`CorsError`, `BlockedReason`, the referrer policy) and on mandatory fields that another version does not send (`charset`
//! of a redirect's response). So they are parsed as types that have only the fields that the farm reads.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use chromiumoxide_cdp::cdp::browser_protocol::{
    network::{
        EventRequestWillBeSent, EventResponseReceived, EventWebSocketCreated, EventWebTransportCreated,
        RequestId, ResourceType,
    },
    target::EventAttachedToTarget,
};
use platen_cdp::Event;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::from_value;
use tokio::time::Instant;

use crate::render::{
    load_state::{MAX_OPEN_TIME, RequestState},
    page_record::RequestError,
    site::Site,
};

/// `Network.requestWillBeSent`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SentRequest {
    pub(super) request_id: RequestId,
    /// The document that sent it; empty for the main script of a worker.
    pub(super) loader_id: String,
    pub(super) frame_id: Option<String>,
    /// The name of a [`ResourceType`].
    #[serde(default)]
    pub(super) r#type: String,
    pub(super) request: RequestLine,
    #[serde(default)]
    initiator: Initiator,
}

impl SentRequest {
    /// Whether it asks if another request may be sent (CORS).
    pub(super) fn is_preflight(&self) -> bool {
        self.initiator.r#type == "preflight"
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestLine {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: String,
    #[serde(default)]
    initial_priority: String,
    #[serde(default)]
    is_link_preload: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Initiator {
    r#type: String,
}

/// `Network.loadingFinished` or `Network.loadingFailed`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndedRequest {
    pub(super) request_id: RequestId,
    /// Chromium's network error, if it has failed.
    #[serde(default)]
    pub(super) error_text: String,
    #[serde(default)]
    pub(super) canceled: bool,
    #[serde(default)]
    blocked_reason: String,
    /// What the response lacks to be read by another origin.
    cors_error_status: Option<IgnoredAny>,
}

impl EndedRequest {
    /// The error of a request that neither the page nor the farm has stopped.
    pub(super) fn error(&self) -> Option<RequestError<'_>> {
        let is_stopped =
            self.canceled || self.error_text == "net::ERR_ABORTED" || self.blocked_reason == "csp";
        // Mixed content has no other name.
        let names = [&*self.error_text, &*self.blocked_reason];
        let name = names.into_iter().find(|name| !name.is_empty() && !is_stopped)?;
        Some(RequestError { name, is_cors: self.cors_error_status.is_some() })
    }
}

/// `Network.responseReceived`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Received {
    pub(super) request_id: RequestId,
    pub(super) response: StatusLine,
}

#[derive(Deserialize)]
pub(super) struct StatusLine {
    pub(super) status: i64,
}

/// `None` if the event lacks a field of `T`.
pub(super) fn parse<T: DeserializeOwned>(event: &Event) -> Option<T> {
    from_value(event.fields()).ok()
}

/// Whether a response may be for something that changes by itself.
pub(super) fn may_change(received: &EventResponseReceived) -> bool {
    let response = &received.response;
    match received.r#type {
        // Every other common image format has an animated variant.
        ResourceType::Image => {
            !response.url.starts_with("data:")
                && !matches!(response.mime_type.as_str(), "image/jpeg" | "image/bmp")
        }
        ResourceType::Document => {
            let headers = response.headers.inner().as_object();
            response.mime_type != "text/html"
                || response.url.contains('#')
                || headers.is_none_or(|all| all.keys().any(|name| name.eq_ignore_ascii_case("refresh")))
        }
        _ => false,
    }
}

/// Whether an event reports an origin, a worker or a socket: something that may leave cookies, storage,
/// cache entries, credentials or running code.
pub(in crate::render) fn taints(event: &Event) -> bool {
    if event.is::<EventRequestWillBeSent>() {
        return parse(event).is_none_or(|sent| loads_origin(&sent));
    }
    needs_real_time(event)
}

pub(super) fn loads_origin(sent: &SentRequest) -> bool {
    !["data:", "blob:", "about:"].iter().any(|scheme| sent.request.url.starts_with(scheme))
}

/// Whether a request of the page is for an asset, of which a reset leaves nothing. A request of another type may outlive its
/// document (`fetch` with `keepalive`, `sendBeacon`), or leave storage, answers to preflights or another document.
pub(super) fn loads_asset(sent: &SentRequest, main_frame: &str) -> bool {
    matches!(&*sent.r#type, "Image" | "Font" | "Stylesheet" | "Script")
        && sent.frame_id.as_deref() == Some(main_frame)
        && sent.request.url.starts_with("http")
}

/// Whether a request of a page with an address is one of which a reset leaves nothing: for its document, or for a file that
/// the farm sends or that is in the request itself.
pub(super) fn leaves_nothing(sent: &SentRequest, main_frame: &str, site: &Site<'_>) -> bool {
    let url = &*sent.request.url;
    let has_type = match &*sent.r#type {
        "Document" => site.address().as_str() == url,
        "Image" | "Font" | "Stylesheet" => url.starts_with("data:") || site.sends(url),
        _ => false,
    };
    has_type && sent.frame_id.as_deref() == Some(main_frame)
}

/// Whether the response to a request of the page is drawn, or may be.
pub(super) fn is_drawn(sent: &SentRequest, is_main_document: bool) -> bool {
    match &*sent.r#type {
        "Font" | "Image" | "Stylesheet" => true,
        "Document" => !is_main_document,
        // An SVG file of which an element is used, such as a filter; not what is fetched for a later page or for a script
        // (`rel=prefetch`, `rel=compression-dictionary`, `rel=preload as=fetch`).
        "Other" => sent.request.initial_priority != "VeryLow" && !sent.request.is_link_preload,
        _ => false,
    }
}

pub(super) fn needs_real_time(event: &Event) -> bool {
    event.is::<EventWebSocketCreated>()
        || event.is::<EventWebTransportCreated>()
        || event.is::<EventAttachedToTarget>()
}

/// A script that sends the same request this often after `load` polls.
const MIN_POLLS: u32 = 3;

#[derive(Default)]
pub(super) struct OpenRequests {
    open: HashMap<RequestId, OpenRequest>,
    /// How often scripts have sent a request after `load`, by a hash of its method and URL.
    repetitions: HashMap<u64, u32>,
    /// The loader of the page's document.
    loader: String,
}

struct OpenRequest {
    /// The session of the worker that sent it; `None` if the page sent it.
    worker: Option<String>,
    is_worker_script: bool,
    /// Its number among the requests of the page, if its response is drawn.
    drawn: Option<u64>,
    began: Instant,
    is_late: bool,
    is_poll: bool,
}

impl OpenRequest {
    /// Whether the network is not idle while it is in progress.
    fn counts(&self, now: Instant) -> bool {
        !(self.is_poll || self.is_late && now >= self.began + MAX_OPEN_TIME)
    }
}

impl OpenRequests {
    /// Adds a request, or the redirect of one; false if the network is idle in spite of it. `is_late` says that the page
    /// has loaded.
    pub(super) fn add(
        &mut self,
        worker: Option<&str>,
        sent: &SentRequest,
        is_worker_script: bool,
        drawn: Option<u64>,
        is_late: bool,
    ) -> bool {
        let now = Instant::now();
        let is_script = worker.is_some() || sent.initiator.r#type == "script";
        let is_poll = is_late && is_script && self.repeats(&sent.request.method, &sent.request.url);
        let worker = worker.map(ToOwned::to_owned);
        let mut request = OpenRequest { worker, is_worker_script, drawn, began: now, is_late, is_poll };
        // A redirect has the id of its request.
        if let Some(first) = self.open.get(&sent.request_id) {
            request = OpenRequest {
                drawn: drawn.and(first.drawn.or(drawn)),
                began: first.began,
                is_late: first.is_late,
                is_poll: first.is_poll,
                ..request
            };
        }
        let counts = request.counts(now);
        self.open.insert(sent.request_id.clone(), request);
        counts
    }

    fn repeats(&mut self, method: &str, url: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (method, url).hash(&mut hasher);
        let repetitions = self.repetitions.entry(hasher.finish()).or_default();
        *repetitions += 1;
        *repetitions >= MIN_POLLS
    }

    /// A request has ended. Whether the network was not idle until then; `None` if it is unknown.
    pub(super) fn end(&mut self, id: &RequestId) -> Option<bool> {
        self.open.remove(id).map(|ended| ended.counts(Instant::now()))
    }

    pub(super) fn end_of_worker(&mut self, session: &str) {
        self.open.retain(|_, request| request.worker.as_deref() != Some(session));
    }

    /// The page has another document. `document.open` keeps the loader of the one before, and the requests that it waits for.
    pub(super) fn begin_document(&mut self, loader: &str) {
        if self.loader == loader {
            return;
        }
        loader.clone_into(&mut self.loader);
        self.open.retain(|_, request| request.worker.is_some());
        self.repetitions.clear();
    }

    pub(super) fn end_all(&mut self) {
        self.open.clear();
    }

    /// Writes what the steps of a job know about requests.
    pub(super) fn record(&self, state: &mut RequestState) {
        let open = || self.open.values();
        state.open = self.open.len();
        state.worker_scripts = open().filter(|request| request.is_worker_script).count();
        state.early = open().filter(|request| !request.is_late).count();
        let late = open().filter(|request| request.is_late && !request.is_poll);
        state.newest_late = late.map(|request| request.began).max();
        let drawn = || open().filter_map(|request| request.drawn);
        (state.oldest_drawn, state.newest_drawn) = (drawn().min(), drawn().max());
    }
}
