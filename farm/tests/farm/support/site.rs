//! A web site on loopback, some of whose pages misbehave, and a path that no page may reach.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::GREEN_PAGE;
use http::{HeaderMap, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use platen_harness::{
    loopback::{BreakOff, ClosedPort, Loopback},
    site::{self, Reply},
};

/// The names that the farm resolves to the site. A page may not go there by the address.
pub(crate) const HOSTS: &[&str] = &["page.test", "other.test", SECURE_HOST];
/// A name whose pages are secure contexts without TLS.
const SECURE_HOST: &str = "page.localhost";

const PICTURE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='50'>\
    <rect width='100' height='50' fill='gold'/><circle cx='30' cy='25' r='20' fill='navy'/></svg>";
/// Installed with Chromium's recommended fonts; pages have it under another name.
const FONT: &str = "/usr/share/fonts/truetype/liberation/LiberationSerif-BoldItalic.ttf";
/// A style sheet with resources that only the layout of a page requests.
const DRAWN: &str = "@font-face { font-family: late; font-display: swap; src: url(/late.ttf) } \
    html { font: 20px late; background: url(/late.svg) center / cover }";
pub(crate) const GREEN_PICTURE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='100'>\
    <rect width='100' height='100' fill='green'/></svg>";
const FRAME: &str = "<body style='background:gold'><script>setTimeout(() => {\
    document.body.style.background = 'navy'; parent.postMessage(1, '*') }, 300)</script>";
const TIMERS: &str = "<!doctype html><html style='background:red'><script>let n = 0; (function again() {\
    ++n < 10 ? setTimeout(again, 50) : document.documentElement.style.background = 'green' })()</script>";
const WORKER_PAGE: &str = "<!doctype html><html style='background:red'><script>\
    new Worker('/page-worker.js').onmessage = () => document.documentElement.style.background = 'green'</script>";
const SPECULATES: &str = "<!doctype html><script type=speculationrules>\
    {\"prefetch\":[{\"urls\":[\"/cookie\"],\"eagerness\":\"immediate\"}],\
    \"prerender\":[{\"urls\":[\"/cookie?2\"],\"eagerness\":\"immediate\"}]}</script>\
    <link rel=prerender href='/cookie?3'><link rel=prefetch href='/cookie?4'>";
const WORKER: &str = "onfetch = event => event.respondWith(new Response('neighbour')); \
    oninstall = () => skipWaiting(); onactivate = () => clients.claim(); onconnect = () => {}; \
    const channel = new BroadcastChannel('neighbours'); setInterval(() => channel.postMessage('worker'), 5)";

pub(crate) struct Site {
    server: site::Site,
    forbidden_requests: Arc<AtomicUsize>,
    closed: ClosedPort,
    closing: Loopback,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let forbidden_requests = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&forbidden_requests);
        let server = site::Site::start_with(move |uri, headers| {
            reply(uri, headers).unwrap_or_else(|| {
                counter.fetch_add(1, Ordering::SeqCst);
                Reply::page("forbidden")
            })
        });
        Self {
            server: server.await.unwrap(),
            forbidden_requests,
            closed: ClosedPort::hold().unwrap(),
            closing: Loopback::start(async |_| Err(BreakOff)).await.unwrap(),
        }
    }

    /// The URL of a page.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://page.test:{}{path}", self.port())
    }

    /// The URL of a page under another name.
    pub(crate) fn elsewhere(&self, path: &str) -> String {
        format!("http://other.test:{}{path}", self.port())
    }

    /// Markup that navigates to a page of the site in a secure context. The URL of a job cannot name such a page.
    pub(crate) fn secure(&self, path: &str) -> String {
        format!("<script>location = 'http://{SECURE_HOST}:{}{path}'</script>", self.port())
    }

    /// Markup with the URLs of the site in place of `{site}`, `{elsewhere}` and `{socket}`.
    pub(crate) fn fill(&self, markup: &str) -> String {
        let markup = markup.replace("{site}", &self.at("")).replace("{elsewhere}", &self.elsewhere(""));
        markup.replace("{socket}", &self.at("").replace("http:", "ws:"))
    }

    /// The path of a page with this markup.
    pub(crate) fn markup(markup: &str) -> String {
        format!("/markup?{}", utf8_percent_encode(markup, NON_ALPHANUMERIC))
    }

    /// The URL of the site by its address, where no page may go.
    pub(crate) fn forbidden(&self) -> String {
        self.server.private_url("/forbidden")
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// The number of requests for [`Self::forbidden`] and for unknown paths.
    pub(crate) fn forbidden_requests(&self) -> usize {
        self.forbidden_requests.load(Ordering::SeqCst)
    }

    /// Answers a path like this from now on, and returns its URL.
    pub(crate) fn put(&self, path: &str, reply: Reply) -> String {
        self.server.put(path, reply);
        self.at(path)
    }

    pub(crate) fn hits(&self, path: &str) -> usize {
        self.server.hits(path)
    }

    /// The headers of the last request for a path.
    pub(crate) fn last_headers(&self, path: &str) -> HeaderMap {
        self.server.last_headers(path).unwrap()
    }

    pub(crate) async fn until_hits(&self, path: &str, hits: usize) {
        self.server.until_hits(path, hits).await.unwrap();
    }

    /// A URL at which no server listens.
    pub(crate) fn closed(&self) -> String {
        self.closed.url().unwrap().replace("127.0.0.1", "page.test")
    }

    /// A URL whose server closes connections without an answer.
    pub(crate) fn closing(&self) -> String {
        format!("http://page.test:{}/", self.closing.address().port())
    }

    /// An HTTPS URL whose server speaks plain HTTP.
    pub(crate) fn without_tls(&self) -> String {
        format!("https://page.test:{}/", self.port())
    }
}

/// The response of a known path.
fn reply(uri: &Uri, headers: &HeaderMap) -> Option<Reply> {
    let query = uri.query().unwrap_or_default();
    let late = Duration::from_millis(300);
    let script = |text: &'static str| typed("text/javascript", text);
    if let Some(status) = uri.path().strip_prefix("/status/") {
        return Some(Reply::page(GREEN_PAGE).with_status(status.parse().ok()?));
    }
    Some(match uri.path() {
        "/green" => Reply::page(GREEN_PAGE),
        "/cookie" => cookie(headers),
        "/empty" => Reply::page("").with_status(StatusCode::NO_CONTENT),
        "/download" => {
            Reply::of("application/octet-stream", "file").with_header("content-disposition", "attachment")
        }
        "/to" => Reply::redirect(query).with_status(StatusCode::SEE_OTHER),
        "/never" => Reply::never(),
        "/large" => typed("text/plain", vec![b'x'; 3_000_000]),
        "/late.css" => typed("text/css", "html { background: green }").after(Duration::from_millis(700)),
        "/drawn.css" => typed("text/css", DRAWN),
        "/late.svg" => typed("image/svg+xml", GREEN_PICTURE).after(late),
        "/late.ttf" => typed("font/ttf", fs::read(FONT).unwrap()).after(late),
        "/picture.svg" => typed("image/svg+xml", PICTURE),
        "/font.ttf" => typed("font/ttf", fs::read(FONT).unwrap()),
        "/script.js" => script("bar(110); done()"),
        "/json" => typed("application/json", r#"{ "width": 130 }"#),
        "/events" => typed("text/event-stream", "data: 1\n\ndata: 2\n\ndata: 3\n\n"),
        "/worker" => Reply::page(WORKER_PAGE),
        "/page-worker.js" => script("fetch('/json').then(() => postMessage(0))"),
        "/broken" => Reply::page("<!doctype html><p>part").broken_off(),
        "/frame" => Reply::page(FRAME),
        "/speculates" => Reply::page(SPECULATES),
        "/timers" => Reply::page(TIMERS),
        "/markup" => markup(query),
        "/probe" => Reply::page(include_str!("../neighbours/probe.html")),
        "/worker.js" => script(WORKER),
        _ => return None,
    })
}

/// A response that pages of every origin may read.
fn typed(content_type: &str, body: impl Into<bytes::Bytes>) -> Reply {
    Reply::of(content_type, body).with_header("access-control-allow-origin", "*")
}

/// Green for a client without cookies; sets some.
fn cookie(headers: &HeaderMap) -> Reply {
    let colour = if headers.contains_key(http::header::COOKIE) { "red" } else { "green" };
    let page = format!(
        "<!doctype html><script>\
         const fresh = !document.cookie.includes('script') && !localStorage.length && !window.name;\
         document.documentElement.style.background = fresh ? '{colour}' : 'red';\
         document.cookie = 'script=1'; localStorage.x = 1; window.name = 'x'</script>"
    );
    Reply::page(page).with_header("set-cookie", "server=1").with_header("cache-control", "max-age=600")
}

/// The page in the query, with everything that a site can store in a browser by headers.
fn markup(query: &str) -> Reply {
    Reply::page(percent_decode_str(query).decode_utf8_lossy().into_owned())
        .with_header("set-cookie", "neighbour=1; max-age=600")
        .with_header("strict-transport-security", "max-age=600; includeSubDomains")
        .with_header("cache-control", "max-age=600")
}
