//! The address of markup that has one, and what answers there: the markup itself, and the files beside it.
//!
//! Chromium reports requests to the host before they are sent, and takes their answers from here, so no page can reach a file
//! over a socket.
//!
//! Invariant: a page that has had such a document is closed after its job, so cookies, storage and caches of an address are gone
//! with its browser context, also for the next job at the same address. It is kept only if the address is one that no other job
//! has, nothing has run there, and all that was loaded came from here ([`super::page_lease::may_reuse_page`]).

mod answers;
mod body;

use std::collections::HashMap;

use chromiumoxide_cdp::cdp::browser_protocol::{
    fetch::{EnableParams, RequestPattern},
    network::{Request, ResourceType},
};
use platen_cdp::{CdpError, Session};
use platen_shared::job::{Asset, RenderJob, Source, path_names};
use url::Url;

pub(super) use self::answers::Answers;
use self::body::{Content, FolderFile};
use crate::folder::Folder;

/// The domain of the addresses that markup without `baseUrl` has; RFC 6761, section 6.4: no name of it is ever resolved.
pub(super) const OWN_DOMAIN: &str = "document.invalid";

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

    /// What answers a request; `None` if the network does.
    fn content(&self, request: &Request) -> Option<Content<'a>> {
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
        let range = header("range").map(ToOwned::to_owned);
        if is_here && url == self.address {
            Some(Content::Markup(self.markup))
        } else if let Some(asset) = self.assets.get(&path_names(url.path())).filter(|_| is_here) {
            Some(Content::Asset(asset, range))
        } else if let Some(folder) = self.folder.filter(|_| is_here) {
            Some(Content::File(FolderFile { folder: folder.clone(), url, range }))
        } else {
            (is_own || is_of_service_worker).then_some(Content::None)
        }
    }
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
