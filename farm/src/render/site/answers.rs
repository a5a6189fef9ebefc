//! The answers to the requests for a site, each after the other.

use std::collections::VecDeque;

use chromiumoxide_cdp::cdp::browser_protocol::{
    fetch::{
        ContinueRequestParams, EventRequestPaused, FailRequestParams, FulfillRequestParams,
        FulfillRequestReturns, HeaderEntry, RequestId,
    },
    network::{ErrorReason, ResourceType},
};
use futures::future;
use platen_cdp::{Call, CdpError, Session};
use platen_shared::limits;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{
    Site,
    body::{Body, Content},
};
use crate::folder::Missing;

/// The answers to the requests for a site. One is sent after the other, because a page can ask for a large file many times at
/// once.
#[derive(Debug)]
pub(in crate::render) struct Answers<'a> {
    pub(in crate::render) site: Option<&'a Site<'a>>,
    waiting: VecDeque<Answer<'a>>,
    current: Option<Step>,
    /// Bytes that the page has got from a folder.
    from_folder: usize,
}

/// How far an answer is.
#[derive(Debug)]
enum Step {
    /// A file is read by a thread that may wait for it.
    Reading(Asked, JoinHandle<Body>),
    Sending(Call<FulfillRequestReturns>),
}

impl<'a> Answers<'a> {
    pub(in crate::render) fn new(site: Option<&'a Site<'a>>) -> Self {
        Self { site, waiting: VecDeque::new(), current: None, from_folder: 0 }
    }

    /// Answers a request that was reported, of the page or a worker. `forbidden_in` is the main frame, if it may not navigate any
    /// more; frames may load their documents.
    pub(in crate::render) fn on_paused(
        &mut self,
        session: &Session,
        worker: Option<&str>,
        forbidden_in: Option<&str>,
        paused: &EventRequestPaused,
    ) -> Result<(), CdpError> {
        let id = paused.request_id.clone();
        if paused.resource_type == ResourceType::Document && forbidden_in == Some(paused.frame_id.inner()) {
            return session.send(&FailRequestParams::new(id, ErrorReason::Aborted));
        }
        let asked =
            Asked { id, worker: worker.map(ToOwned::to_owned), has_body: paused.request.method != "HEAD" };
        match self.site.and_then(|site| site.content(&paused.request)) {
            Some(content) => self.waiting.push_back(Answer { asked, content }),
            None => return asked.session(session).send(&ContinueRequestParams::new(asked.id)),
        }
        if self.current.is_none() { self.begin_next(session) } else { Ok(()) }
    }

    fn begin_next(&mut self, session: &Session) -> Result<(), CdpError> {
        self.current = match self.waiting.pop_front() {
            None => None,
            Some(Answer { asked, content: Content::File(file) }) => {
                Some(Step::Reading(asked, spawn_blocking(move || file.read())))
            }
            Some(Answer { asked, content }) => Some(Step::Sending(asked.send(session, content.body())?)),
        };
        Ok(())
    }

    /// Completes when an answer has been read or sent and the next step begins. Safe to cancel.
    pub(in crate::render) async fn sent(&mut self, session: &Session) -> Result<(), CdpError> {
        match &mut self.current {
            None => future::pending().await,
            Some(Step::Reading(asked, reading)) => {
                // It ends without a body only with the program.
                let mut body = reading.await.unwrap_or_else(|_| Body::missing(Missing::Forbidden));
                let sum = self.from_folder + body.len();
                if sum <= limits::MAX_FOLDER_BYTES {
                    self.from_folder = sum;
                } else {
                    body = Body::missing(Missing::OverLimit);
                }
                self.current = Some(Step::Sending(asked.send(session, body)?));
                Ok(())
            }
            Some(Step::Sending(sending)) => {
                // A request that the page has given up is refused.
                let _ = sending.await;
                self.begin_next(session)
            }
        }
    }
}

#[derive(Debug)]
struct Answer<'a> {
    asked: Asked,
    content: Content<'a>,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Asked {
    id: RequestId,
    /// The session of the worker that reports the request; `None` if it is the page's.
    worker: Option<String>,
    has_body: bool,
}

impl Asked {
    fn session(&self, page: &Session) -> Session {
        self.worker.as_ref().map_or_else(|| page.clone(), |worker| page.worker_session(worker.clone().into()))
    }

    fn send(&self, session: &Session, body: Body) -> Result<Call<FulfillRequestReturns>, CdpError> {
        let headers = [
            ("content-type", body.of_type.clone()),
            ("content-length", Some(body.len().to_string())),
            // Chromium would keep the file for a later page of the address.
            ("cache-control", Some("no-store".to_owned())),
            ("access-control-allow-origin", Some("*".to_owned())),
            ("accept-ranges", Some("bytes".to_owned())),
            ("content-range", body.range),
            ("location", body.location),
        ];
        let headers = headers.into_iter().filter_map(|(name, value)| Some(HeaderEntry::new(name, value?)));
        self.session(session).start(&FulfillRequestParams {
            response_headers: Some(headers.collect()),
            body: self.has_body.then(|| body.base64.into()),
            ..FulfillRequestParams::new(self.id.clone(), body.status)
        })
    }
}
