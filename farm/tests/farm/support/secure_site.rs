//! A site with TLS that a farm and a browser reach at names which are public, and to which a page sends what it has found.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Uri, header, uri::Authority};
use percent_encoding::percent_decode_str;
use platen_farm::Farm;
use platen_harness::{
    http_proxy::HttpProxy,
    site::{Reply, Site},
    tls::{LOCALHOST_KEY_HASH, TlsProxy},
};
use tempfile::TempDir;

use super::{farm, program};

/// An address that is public. The proxy of the farm connects to the site instead.
const PUBLIC: &str = "1.1.1.1";
/// The path to which a page sends its results, as JSON in the query.
const RESULTS: &str = "/results";

/// What a page has found, by name.
pub(crate) type Results = BTreeMap<String, String>;

pub(crate) struct SecureSite {
    pub(crate) tls: TlsProxy,
    proxy: HttpProxy,
    results: Arc<Mutex<Option<Results>>>,
    directory: TempDir,
    _site: Site,
}

impl SecureSite {
    /// Starts a site that answers a request to a host with its URI and headers.
    pub(crate) async fn start(
        reply: impl Fn(&str, &Uri, &HeaderMap) -> Reply + Clone + Send + 'static,
    ) -> Self {
        let results = Arc::<Mutex<Option<Results>>>::default();
        let sent = Arc::clone(&results);
        let site = Site::start_with(move |uri, headers| {
            if uri.path() == RESULTS {
                let query = percent_decode_str(uri.query().unwrap_or_default()).decode_utf8_lossy();
                *sent.lock().unwrap() = serde_json::from_str(&query).ok();
                return Reply::page("").with_header("access-control-allow-origin", "*");
            }
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            reply(host.or_else(|| uri.authority().map(Authority::as_str)).unwrap_or_default(), uri, headers)
        });
        let site = site.await.unwrap();
        let tls = TlsProxy::start(site.address(), &["http/1.1"]).await.unwrap();
        let proxy = HttpProxy::to(([127, 0, 0, 1], tls.port()).into()).await.unwrap();
        Self { tls, proxy, results, directory: tempfile::tempdir().unwrap(), _site: site }
    }

    /// A farm that reaches the site at these names, and whose browsers trust its certificate.
    pub(crate) async fn farm(&self, hosts: &[&str]) -> Farm {
        fs::set_permissions(self.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let script = format!(
            "#!/bin/sh\nfor b in /usr/lib/chromium/chromium-headless-shell /opt/google/chrome/chrome; do\n\
             [ ! -x \"$b\" ] || exec \"$b\" --ignore-certificate-errors-spki-list={LOCALHOST_KEY_HASH} \"$@\"; done\n"
        );
        let chromium = program(&self.directory.path().join("chromium"), &script);
        farm(|config| {
            config.resolve = hosts.iter().map(|host| format!("{host}={PUBLIC}").parse().unwrap()).collect();
            config.egress.proxy = Some(self.proxy.url().into());
            config.chromium = Some(chromium);
        })
        .await
    }

    /// The switches of a browser without a farm that reaches the site at all names of `test`.
    pub(crate) fn switches(&self) -> [String; 2] {
        [
            format!("--host-resolver-rules=MAP *.test 127.0.0.1:{}", self.tls.port()),
            format!("--ignore-certificate-errors-spki-list={LOCALHOST_KEY_HASH}"),
        ]
    }

    /// The results that the last page has sent.
    pub(crate) fn take(&self) -> Results {
        self.results.lock().unwrap().take().expect("a page with results")
    }
}
