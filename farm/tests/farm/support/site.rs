//! A web site on loopback, some of whose pages misbehave, and a canary that nobody may visit.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpSocket},
};

/// Names under which the farm finds the site. The canary is on the same address, by its number.
pub(crate) const HOSTS: &[&str] = &["page.test", "other.test", SECURE_HOST];
/// A name whose pages are secure contexts without TLS.
const SECURE_HOST: &str = "page.localhost";

const PICTURE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='50'>\
    <rect width='100' height='50' fill='gold'/><circle cx='30' cy='25' r='20' fill='navy'/></svg>";
/// Comes with Chromium's own recommended fonts; pages have it under another name.
const FONT: &str = "/usr/share/fonts/truetype/liberation/LiberationSerif-BoldItalic.ttf";
/// Names what only the layout of a page requests.
const DRAWN: &str = "@font-face { font-family: late; font-display: swap; src: url(/late.ttf) } \
    html { font: 20px late; background: url(/late.svg) center / cover }";
const GREEN_PICTURE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='100'>\
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
    setInterval(() => new BroadcastChannel('neighbours').postMessage('worker'), 5)";

/// The site.
pub(crate) struct Site {
    port: u16,
    canary: Arc<AtomicUsize>,
    /// Bound, so that nobody else gets its port, and not listening.
    closed: TcpSocket,
    rude: u16,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let canary = Arc::<AtomicUsize>::default();
        let router = Router::new()
            .route("/green", get(async || Html("<!doctype html><html style='background:green'>")))
            .route("/cookie", get(cookie))
            .route("/status/{code}", get(status))
            .route("/empty", get(async || StatusCode::NO_CONTENT))
            .route("/download", get(download))
            .route("/loop", get(async || Redirect::to("/loop")))
            .route("/to", get(async |RawQuery(url): RawQuery| Redirect::to(&url.unwrap_or_default())))
            .route("/never", get(async || std::future::pending::<()>().await))
            .route("/large", get(large))
            .route("/late.css", get(late_style))
            .route("/drawn.css", get(async || typed("text/css", DRAWN)))
            .route("/late.svg", get(async || late("image/svg+xml", GREEN_PICTURE).await))
            .route("/late.ttf", get(async || late("font/ttf", fs::read(FONT).unwrap()).await))
            .route("/picture.svg", get(async || typed("image/svg+xml", PICTURE)))
            .route("/font.ttf", get(async || typed("font/ttf", fs::read(FONT).unwrap())))
            .route("/script.js", get(async || typed("text/javascript", "bar(110); done()")))
            .route("/json", get(async || typed("application/json", r#"{ "width": 130 }"#)))
            .route("/events", get(async || typed("text/event-stream", "data: 1\n\ndata: 2\n\ndata: 3\n\n")))
            .route("/worker", get(async || Html(WORKER_PAGE)))
            .route(
                "/page-worker.js",
                get(async || typed("text/javascript", "fetch('/json').then(() => postMessage(0))")),
            )
            .route("/broken", get(broken))
            .route("/frame", get(async || Html(FRAME)))
            .route("/speculates", get(async || Html(SPECULATES)))
            .route("/timers", get(async || Html(TIMERS)))
            .route("/markup", get(markup))
            .route("/probe", get(async || Html(include_str!("../neighbours/probe.html"))))
            .route("/worker.js", get(async || typed("text/javascript", WORKER)))
            .route("/canary", get(tweet))
            .fallback(get(tweet))
            .with_state(Arc::clone(&canary));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async { axum::serve(listener, router).await });
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Self { port, canary, closed, rude: rude().await }
    }

    /// A page of the site.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://page.test:{}{path}", self.port)
    }

    /// The same server under another name.
    pub(crate) fn elsewhere(&self, path: &str) -> String {
        format!("http://other.test:{}{path}", self.port)
    }

    /// Markup that moves on to a page of the site whose context is secure. A job's own URL cannot name such
    /// a page.
    pub(crate) fn secure(&self, path: &str) -> String {
        format!("<script>location = 'http://{SECURE_HOST}:{}{path}'</script>", self.port)
    }

    /// The path of a page with this markup.
    pub(crate) fn markup(markup: &str) -> String {
        format!("/markup?{}", utf8_percent_encode(markup, NON_ALPHANUMERIC))
    }

    /// The same server by its address, where no page may go.
    pub(crate) fn forbidden(&self) -> String {
        format!("http://127.0.0.1:{}/canary", self.port)
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How often somebody went where no page may go.
    pub(crate) fn visits(&self) -> usize {
        self.canary.load(Ordering::SeqCst)
    }

    /// Where nobody listens.
    pub(crate) fn closed(&self) -> String {
        format!("http://page.test:{}/", self.closed.local_addr().unwrap().port())
    }

    /// Where connections are cut off.
    pub(crate) fn rude(&self) -> String {
        format!("http://page.test:{}/", self.rude)
    }

    /// Plain HTTP where the caller expects TLS.
    pub(crate) fn without_tls(&self) -> String {
        format!("https://page.test:{}/", self.port)
    }
}

/// An answer for pages of whatever origin.
async fn late(kind: &'static str, body: impl IntoResponse) -> impl IntoResponse {
    tokio::time::sleep(Duration::from_millis(300)).await;
    typed(kind, body)
}

fn typed(kind: &'static str, body: impl IntoResponse) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], body)
}

/// Green for a visitor without cookies, who gets some.
async fn cookie(headers: HeaderMap) -> Response {
    let colour = if headers.contains_key(header::COOKIE) { "red" } else { "green" };
    let page = format!(
        "<!doctype html><script>\
         const fresh = !document.cookie.includes('script') && !localStorage.length && !window.name;\
         document.documentElement.style.background = fresh ? '{colour}' : 'red';\
         document.cookie = 'script=1'; localStorage.x = 1; window.name = 'x'</script>"
    );
    ([(header::SET_COOKIE, "server=1"), (header::CACHE_CONTROL, "max-age=600")], Html(page)).into_response()
}

/// The page that its query is, with what a site can leave in a browser.
async fn markup(RawQuery(markup): RawQuery) -> Response {
    let markup = percent_decode_str(&markup.unwrap_or_default()).decode_utf8_lossy().into_owned();
    let left = [
        (header::SET_COOKIE, "neighbour=1; max-age=600"),
        (header::STRICT_TRANSPORT_SECURITY, "max-age=600; includeSubDomains"),
        (header::CACHE_CONTROL, "max-age=600"),
    ];
    (left, Html(markup)).into_response()
}

async fn status(Path(code): Path<u16>) -> impl IntoResponse {
    (StatusCode::from_u16(code).unwrap(), Html("<!doctype html><html style='background:green'>"))
}

async fn download() -> impl IntoResponse {
    let headers =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, "attachment")];
    (headers, "file")
}

/// Three megabytes that every page may read.
async fn large() -> impl IntoResponse {
    ([(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], vec![b'x'; 3_000_000])
}

async fn late_style() -> impl IntoResponse {
    tokio::time::sleep(Duration::from_millis(700)).await;
    typed("text/css", "html { background: green }")
}

/// A page that breaks off in the middle.
async fn broken() -> Response {
    let chunks = futures::stream::iter([Ok("<!doctype html><p>part"), Err(std::io::Error::other("broken"))]);
    ([(header::CONTENT_TYPE, "text/html")], axum::body::Body::from_stream(chunks)).into_response()
}

async fn tweet(State(canary): State<Arc<AtomicUsize>>) -> &'static str {
    canary.fetch_add(1, Ordering::SeqCst);
    "tweet"
}

/// A server that hangs up when it has been asked.
async fn rude() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    port
}
