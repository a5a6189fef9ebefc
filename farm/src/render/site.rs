//! The address of markup that has one, and what answers there: the markup itself, and the files beside it.
//!
//! Chromium reports requests to the host before they are sent, and takes their answers from here, so no page can reach a file
//! over a socket.
//!
//! Invariant: a page that has had such a document is closed after its job, so cookies, storage and caches of an address are gone
//! with its browser context, also for the next job at the same address. It is kept only if the address is one that no other job
//! has, nothing has run there, and all that was loaded came from here ([`super::page_lease::may_reuse_page`]).

use std::collections::{HashMap, VecDeque};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chromiumoxide_cdp::cdp::browser_protocol::{
    fetch::{
        ContinueRequestParams, EnableParams, EventRequestPaused, FailRequestParams, FulfillRequestParams,
        FulfillRequestReturns, HeaderEntry, RequestId, RequestPattern,
    },
    network::{ErrorReason, ResourceType},
};
use futures::future;
use platen_cdp::{Call, CdpError, Session};
use platen_shared::job::{Asset, AssetContent, RenderJob, Source, path_names};
use url::Url;

use crate::folder::Folder;

/// The domain of the addresses that markup without `baseUrl` has; RFC 6761, section 6.4: no name of it is ever resolved.
pub(super) const OWN_DOMAIN: &str = "document.invalid";
/// The type of files without another one.
const ANY_TYPE: &str = "application/octet-stream";

/// The address of a job's markup, and what answers there.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    address: Url,
    /// The address is one below [`OWN_DOMAIN`].
    is_own: bool,
    markup: &'a str,
    /// The assets, by the names of their paths.
    assets: HashMap<Vec<String>, &'a Asset>,
    /// What answers where no asset does.
    folder: Option<&'a Folder>,
}

impl<'a> Site<'a> {
    /// The address of a job's markup; `None` if it has none.
    pub(crate) fn of(job: &'a RenderJob, folder: Option<&'a Folder>) -> Option<Self> {
        let Source::Html(markup) = &job.source else { return None };
        if !job.has_address() {
            return None;
        }
        let options = &job.options;
        let is_own = options.has_own_address();
        let mut address = match &options.base_url {
            Some(url) => url.as_url().clone(),
            None => Url::parse(&format!("https://{:016x}.{OWN_DOMAIN}/", rand::random::<u64>())).ok()?,
        };
        address.set_fragment(None);
        if let Some(folder) = folder.filter(|_| is_own) {
            address.set_path(folder.page());
        }
        let mut beside = path_names(address.path());
        beside.pop();
        let path_of = |asset: &Asset| beside.iter().cloned().chain(path_names(asset.path.as_str())).collect();
        let assets = options.assets.iter().flatten().map(|asset| (path_of(asset), asset)).collect();
        Some(Self { address, is_own, markup: markup.as_str(), assets, folder })
    }

    /// The URL to which the page navigates.
    pub(super) fn address(&self) -> &Url {
        &self.address
    }

    /// Whether all that answers a URL comes from here: a file, or a 404.
    pub(super) fn sends(&self, url: &str) -> bool {
        self.is_own && Url::parse(url).is_ok_and(|url| url.origin() == self.address.origin())
    }

    /// The host, if no file or text may show it.
    pub(super) fn hidden_host(&self) -> Option<String> {
        self.is_own.then(|| self.address.host_str().unwrap_or_default().to_owned())
    }

    /// The patterns of the requests to report. They may match others as well.
    fn patterns(&self) -> Vec<RequestPattern> {
        let patterns = if self.is_own {
            vec![format!("*://{OWN_DOMAIN}*"), format!("*://*.{OWN_DOMAIN}*")]
        } else {
            vec![format!("{}/*", self.address.origin().ascii_serialization())]
        };
        patterns
            .into_iter()
            .map(|url| RequestPattern { url_pattern: Some(url), ..Default::default() })
            .collect()
    }

    /// The answer to a request; `None` if the network has it.
    fn answer(&self, worker: Option<&str>, paused: &EventRequestPaused) -> Option<Answer<'a>> {
        let request = &paused.request;
        let header = |name: &str| {
            let headers = request.headers.inner().as_object()?;
            headers.iter().find(|(its, _)| its.eq_ignore_ascii_case(name))?.1.as_str()
        };
        let url = Url::parse(&request.url).ok()?;
        let is_own = self.is_own
            && url
                .host_str()?
                .strip_suffix(OWN_DOMAIN)
                .is_some_and(|head| head.is_empty() || head.ends_with('.'));
        let is_of_service_worker = header("service-worker").is_some();
        let is_here = url.origin() == self.address.origin() && !is_of_service_worker;
        let content = if is_here && url == self.address {
            Content::Markup(self.markup)
        } else if let Some(asset) = self.assets.get(&path_names(url.path())).filter(|_| is_here) {
            Content::Asset(asset, header("range").map(ToOwned::to_owned))
        } else if let Some(folder) = self.folder.filter(|_| is_here) {
            Content::File(folder, url.path().to_owned(), header("range").map(ToOwned::to_owned))
        } else if is_own || is_of_service_worker {
            Content::None
        } else {
            return None;
        };
        let has_body = request.method != "HEAD";
        let worker = worker.map(ToOwned::to_owned);
        Some(Answer { id: paused.request_id.clone(), worker, content, has_body })
    }
}

/// The answers to the requests for a site. One is sent after the other, because a page can ask for a large file many times at
/// once.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    pub(super) site: Option<&'a Site<'a>>,
    waiting: VecDeque<Answer<'a>>,
    sending: Option<Call<FulfillRequestReturns>>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(site: Option<&'a Site<'a>>) -> Self {
        Self { site, waiting: VecDeque::new(), sending: None }
    }

    /// Answers a request that was reported, of the page or a worker. `forbidden_in` is the main frame, if it may not navigate any
    /// more; frames may load their documents.
    pub(super) fn on_paused(
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
        match self.site.and_then(|site| site.answer(worker, paused)) {
            Some(answer) if self.sending.is_none() => {
                self.sending = Some(answer.send(session)?);
                Ok(())
            }
            Some(answer) => {
                self.waiting.push_back(answer);
                Ok(())
            }
            None => session_of(session, worker).send(&ContinueRequestParams::new(id)),
        }
    }

    /// Completes when an answer has been sent and the next one begins. Safe to cancel.
    pub(super) async fn sent(&mut self, session: &Session) -> Result<(), CdpError> {
        let Some(sending) = &mut self.sending else { return future::pending().await };
        // A request that the page has given up is refused.
        let _ = sending.await;
        self.sending = self.waiting.pop_front().map(|answer| answer.send(session)).transpose()?;
        Ok(())
    }
}

#[derive(Debug)]
struct Answer<'a> {
    id: RequestId,
    /// The session of the worker that reports the request; `None` if it is the page's.
    worker: Option<String>,
    content: Content<'a>,
    has_body: bool,
}

#[derive(Debug)]
enum Content<'a> {
    /// A 404.
    None,
    Markup(&'a str),
    /// A file, or the range of it that is asked for.
    Asset(&'a Asset, Option<String>),
    /// A file of a folder with the path of its address, which is read when its turn comes.
    File(&'a Folder, String, Option<String>),
}

impl Answer<'_> {
    fn send(self, session: &Session) -> Result<Call<FulfillRequestReturns>, CdpError> {
        let (body, of_type, (status, range)) = match self.content {
            Content::None => (String::new(), None, (404, None)),
            Content::Markup(markup) => {
                (STANDARD.encode(markup), Some("text/html; charset=utf-8".to_owned()), (200, None))
            }
            Content::Asset(asset, range) => {
                let (body, status_and_range) = part_of(asset, range.as_deref());
                (body, Some(content_type(asset)), status_and_range)
            }
            Content::File(folder, path, range) => match folder.read(&path) {
                Ok(bytes) => {
                    let (body, status_and_range) = part_of_bytes(&bytes, range.as_deref());
                    (body, Some(type_of(&path).to_owned()), status_and_range)
                }
                Err(missing) => (String::new(), None, (missing as i64, None)),
            },
        };
        let padding = body.bytes().rev().take_while(|byte| *byte == b'=').count();
        let length = (body.len() / 4 * 3).saturating_sub(padding);
        let headers = [
            ("content-type", of_type),
            ("content-length", Some(length.to_string())),
            // Chromium would keep the file for a later page of the address.
            ("cache-control", Some("no-store".to_owned())),
            ("access-control-allow-origin", Some("*".to_owned())),
            ("accept-ranges", Some("bytes".to_owned())),
            ("content-range", range),
        ];
        let headers = headers.into_iter().filter_map(|(name, value)| Some(HeaderEntry::new(name, value?)));
        session_of(session, self.worker.as_deref()).start(&FulfillRequestParams {
            response_headers: Some(headers.collect()),
            body: self.has_body.then(|| body.into()),
            ..FulfillRequestParams::new(self.id, status)
        })
    }
}

fn session_of(page: &Session, worker: Option<&str>) -> Session {
    worker.map_or_else(|| page.clone(), |worker| page.worker_session(worker.to_owned().into()))
}

/// Body in base64, status and `content-range` of an asset, of which a range may be asked for.
fn part_of(asset: &Asset, range: Option<&str>) -> (String, (i64, Option<String>)) {
    let encoded = match &asset.content {
        AssetContent::Base64(content) => content.as_str().to_owned(),
        AssetContent::Text(text) => STANDARD.encode(text.as_str()),
    };
    if range.is_none() {
        return (encoded, (200, None));
    }
    part_of_bytes(&STANDARD.decode(&encoded).unwrap_or_default(), range)
}

fn part_of_bytes(bytes: &[u8], range: Option<&str>) -> (String, (i64, Option<String>)) {
    match range.and_then(|range| part(range, bytes.len())) {
        None => (STANDARD.encode(bytes), (200, None)),
        Some(Err(())) => (String::new(), (416, Some(format!("bytes */{}", bytes.len())))),
        Some(Ok((first, last))) => {
            let range = format!("bytes {first}-{last}/{}", bytes.len());
            (STANDARD.encode(&bytes[first..=last]), (206, Some(range)))
        }
    }
}

/// The first and the last byte of a range of RFC 9110, section 14.1.2; an error if the file has none of them, and `None` if it
/// is to be ignored.
fn part(range: &str, length: usize) -> Option<Result<(usize, usize), ()>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first, last) {
        ("", suffix) => (length.saturating_sub(suffix.parse().ok()?), length),
        (first, "") => (first.parse().ok()?, length),
        (first, last) => (first.parse().ok()?, last.parse().ok()?),
    };
    if first > last {
        return None;
    }
    Some(if first < length { Ok((first, last.min(length - 1))) } else { Err(()) })
}

fn content_type(asset: &Asset) -> String {
    let given = asset.mime_type.as_ref().map(|given| given.as_str().to_owned());
    let of_extension = || type_of(asset.path.as_str()).to_owned();
    let of_type = given.unwrap_or_else(of_extension);
    let is_text = matches!(asset.content, AssetContent::Text(_)) && of_type.starts_with("text/");
    if is_text && !of_type.contains(';') { format!("{of_type}; charset=utf-8") } else { of_type }
}

fn type_of(path: &str) -> &'static str {
    mime_guess::from_path(path).first_raw().unwrap_or(ANY_TYPE)
}

/// Reports the requests that the farm answers: those of a site, and, if the page has navigated too often, documents.
pub(super) fn intercept(
    session: &Session,
    site: Option<&Site<'_>>,
    forbids_documents: bool,
) -> Result<(), CdpError> {
    let documents = RequestPattern { resource_type: Some(ResourceType::Document), ..Default::default() };
    let mut patterns = site.map(Site::patterns).unwrap_or_default();
    patterns.extend(forbids_documents.then_some(documents));
    session.send(&EnableParams { patterns: Some(patterns), ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_of_the_file() {
        for (range, expected) in [
            ("bytes=0-", Some(Ok((0, 9)))),
            ("bytes=2-3", Some(Ok((2, 3)))),
            ("bytes=2-300", Some(Ok((2, 9)))),
            ("bytes=-4", Some(Ok((6, 9)))),
            ("bytes=-40", Some(Ok((0, 9)))),
            ("bytes=10-", Some(Err(()))),
            ("bytes=-0", Some(Err(()))),
            ("bytes=3-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(part(range, 10), expected, "{range}");
        }
        assert_eq!(part("bytes=0-", 0), Some(Err(())));
    }
}
