//! The address of markup that has one, and what answers there: the markup itself, and the files beside it.
//!
//! Chromium reports requests to the host before they are sent, and takes their answers from here, so no page can reach a file
//! over a socket.
//!
//! Invariant: a page that has had such a document is closed after its job, so cookies, storage and caches of an address are gone
//! with its browser context, also for the next job at the same address.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chromiumoxide_cdp::cdp::browser_protocol::{
    fetch::{
        ContinueRequestParams, EnableParams, EventRequestPaused, FailRequestParams, FulfillRequestParams,
        HeaderEntry, RequestPattern,
    },
    network::{ErrorReason, ResourceType},
};
use platen_cdp::{CdpError, Session};
use platen_shared::job::{Asset, AssetContent, RenderJob, Source, path_names};
use url::Url;

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
}

impl<'a> Site<'a> {
    /// The address of a job's markup; `None` if it has none.
    pub(crate) fn of(job: &'a RenderJob) -> Option<Self> {
        let Source::Html(markup) = &job.source else { return None };
        let options = &job.options;
        if options.assets.is_none() && options.base_url.is_none() {
            return None;
        }
        let is_own = options.base_url.is_none();
        let mut address = match &options.base_url {
            Some(url) => url.as_url().clone(),
            None => Url::parse(&format!("https://{:016x}.{OWN_DOMAIN}/", rand::random::<u64>())).ok()?,
        };
        address.set_fragment(None);
        let mut folder = path_names(address.path());
        folder.pop();
        let path_of = |asset: &Asset| folder.iter().cloned().chain(path_names(asset.path.as_str())).collect();
        let assets = options.assets.iter().flatten().map(|asset| (path_of(asset), asset)).collect();
        Some(Self { address, is_own, markup: markup.as_str(), assets })
    }

    /// The URL to which the page navigates.
    pub(super) fn address(&self) -> &Url {
        &self.address
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
    fn answer(&self, paused: &EventRequestPaused) -> Option<FulfillRequestParams> {
        let (id, request) = (paused.request_id.clone(), &paused.request);
        let header = |name: &str| {
            let headers = request.headers.inner().as_object()?;
            headers.iter().find(|(its, _)| its.eq_ignore_ascii_case(name))?.1.as_str()
        };
        let url = Url::parse(&request.url).ok()?;
        let host = url.host_str()?;
        let is_own = self.is_own
            && host.strip_suffix(OWN_DOMAIN).is_some_and(|head| head.is_empty() || head.ends_with('.'));
        let is_here = url.origin() == self.address.origin();
        let found = if !is_here || header("service-worker").is_some() {
            None
        } else if url == self.address {
            Some((STANDARD.encode(self.markup), "text/html; charset=utf-8".to_owned(), (200, None)))
        } else {
            self.assets.get(&path_names(url.path())).map(|asset| answer_with(asset, header("range")))
        };
        match found {
            Some((body, of_type, (status, range))) => {
                let mut headers = vec![
                    entry("content-type", of_type),
                    // Chromium would keep the file for a later page of the address.
                    entry("cache-control", "no-store".to_owned()),
                    entry("access-control-allow-origin", "*".to_owned()),
                    entry("accept-ranges", "bytes".to_owned()),
                ];
                headers.extend(range.map(|range| entry("content-range", range)));
                let body = (request.method != "HEAD").then(|| body.into());
                let answer = FulfillRequestParams::new(id, status);
                Some(FulfillRequestParams { response_headers: Some(headers), body, ..answer })
            }
            None if is_own || header("service-worker").is_some() => {
                let headers = vec![entry("access-control-allow-origin", "*".to_owned())];
                Some(FulfillRequestParams {
                    response_headers: Some(headers),
                    ..FulfillRequestParams::new(id, 404)
                })
            }
            None => None,
        }
    }
}

fn entry(name: &str, value: String) -> HeaderEntry {
    HeaderEntry::new(name, value)
}

/// Body in base64, content type, status and `content-range` of an asset, of which a part may be asked for.
fn answer_with(asset: &Asset, range: Option<&str>) -> (String, String, (i64, Option<String>)) {
    let of_type = content_type(asset);
    let encoded = match &asset.content {
        AssetContent::Base64(content) => content.as_str().to_owned(),
        AssetContent::Text(text) => STANDARD.encode(text.as_str()),
    };
    let Some(range) = range else { return (encoded, of_type, (200, None)) };
    let bytes = STANDARD.decode(&encoded).unwrap_or_default();
    match part(range, bytes.len()) {
        None => (encoded, of_type, (200, None)),
        Some(Err(())) => (String::new(), of_type, (416, Some(format!("bytes */{}", bytes.len())))),
        Some(Ok((first, last))) => {
            let range = format!("bytes {first}-{last}/{}", bytes.len());
            (STANDARD.encode(&bytes[first..=last]), of_type, (206, Some(range)))
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
    let of_extension =
        || mime_guess::from_path(asset.path.as_str()).first_raw().unwrap_or(ANY_TYPE).to_owned();
    let of_type = given.unwrap_or_else(of_extension);
    let is_text = matches!(asset.content, AssetContent::Text(_)) && of_type.starts_with("text/");
    if is_text && !of_type.contains(';') { format!("{of_type}; charset=utf-8") } else { of_type }
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

/// Answers a request that was reported. `forbidden_in` is the main frame, if it may not navigate any more; frames may load their
/// documents.
pub(super) fn on_paused(
    session: &Session,
    site: Option<&Site<'_>>,
    forbidden_in: Option<&str>,
    paused: &EventRequestPaused,
) -> Result<(), CdpError> {
    let id = paused.request_id.clone();
    if paused.resource_type == ResourceType::Document && forbidden_in == Some(paused.frame_id.inner()) {
        return session.send(&FailRequestParams::new(id, ErrorReason::Aborted));
    }
    match site.and_then(|site| site.answer(paused)) {
        Some(answer) => session.send(&answer),
        None => session.send(&ContinueRequestParams::new(id)),
    }
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
