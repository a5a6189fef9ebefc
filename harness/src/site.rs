//! A web site on 127.0.0.1 for renders, reached by a name such as `site.test`.
//!
//! Invariant: every request is recorded, so that a test can prove that a path was never requested.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Response, StatusCode, Uri, header};

use crate::{
    latch::{Latch, LatchWaiter},
    loopback::{Body, BreakOff, Loopback, break_off, full, streamed},
    wait,
};

/// The name that the server under test resolves to 127.0.0.1.
pub const HOST: &str = "site.test";

#[derive(Debug, Clone)]
pub struct Reply {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    delay: Duration,
    latch: LatchWaiter,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    BreaksOff,
    Never,
}

impl Reply {
    pub fn page(html: impl Into<Bytes>) -> Self {
        Self::of("text/html; charset=utf-8", html)
    }

    /// A body of a media type.
    pub fn of(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: vec![("content-type", content_type.to_owned())],
            body: body.into(),
            delay: Duration::ZERO,
            latch: LatchWaiter::ready(),
            end: End::Complete,
        }
    }

    pub fn redirect(to: &str) -> Self {
        Self::page("").with_status(StatusCode::FOUND).with_header(header::LOCATION.as_str(), to)
    }

    /// No response, on a connection that stays open.
    pub fn never() -> Self {
        Self { end: End::Never, ..Self::page("") }
    }

    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sent after a delay, as by a slow site.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Sent once the latch is open.
    pub fn behind(self, latch: &Latch) -> Self {
        Self { latch: latch.waiter(), ..self }
    }

    /// Followed by the end of the connection instead of the end of the body.
    pub fn broken_off(self) -> Self {
        Self { end: End::BreaksOff, ..self }
    }

    async fn send(self) -> Result<Response<Body>, BreakOff> {
        tokio::time::sleep(self.delay).await;
        self.latch.opened().await;
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body = match self.end {
            End::Complete => full(self.body),
            End::BreaksOff => streamed(stream::iter([Ok(self.body)]).chain(stream::once(break_off()))),
            End::Never => std::future::pending().await,
        };
        response.body(body).map_err(|_| BreakOff)
    }
}

#[derive(Debug, Default)]
struct State {
    replies: Mutex<HashMap<String, Reply>>,
    requests: Mutex<HashMap<String, Vec<HeaderMap>>>,
}

#[derive(Debug)]
pub struct Site {
    server: Loopback,
    state: Arc<State>,
}

impl Site {
    /// Starts a site that answers every path with 404.
    pub async fn start() -> Result<Self> {
        Self::start_with(|_, _| Reply::page("").with_status(StatusCode::NOT_FOUND)).await
    }

    /// Starts a site that answers paths without a [`put`](Self::put) reply with what `fallback` returns for the
    /// URI and the headers of a request.
    pub async fn start_with(
        fallback: impl Fn(&Uri, &HeaderMap) -> Reply + Clone + Send + 'static,
    ) -> Result<Self> {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let server = Loopback::start(move |request| {
            let path = request.uri().path().to_owned();
            lock(&shared.requests).entry(path.clone()).or_default().push(request.headers().clone());
            let reply = lock(&shared.replies).get(&path).cloned();
            reply.unwrap_or_else(|| fallback(request.uri(), request.headers())).send()
        })
        .await?;
        Ok(Self { server, state })
    }

    /// Answers a path like this from now on, and returns its URL by name.
    pub fn put(&self, path: &str, reply: Reply) -> String {
        lock(&self.state.replies).insert(path.to_owned(), reply);
        self.url(path)
    }

    /// The URL of a path, by name.
    pub fn url(&self, path: &str) -> String {
        format!("http://{HOST}:{}{path}", self.port())
    }

    /// The URL of a path, by address: one that a render may not reach.
    pub fn private_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    pub fn port(&self) -> u16 {
        self.address().port()
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn hits(&self, path: &str) -> usize {
        lock(&self.state.requests).get(path).map_or(0, Vec::len)
    }

    /// Waits until a path has had this many requests.
    pub async fn until_hits(&self, path: &str, hits: usize) -> Result<()> {
        wait::until(&format!("request {hits} for {path}"), || self.hits(path) >= hits).await
    }

    /// The headers of the last request for a path.
    pub fn last_headers(&self, path: &str) -> Option<HeaderMap> {
        lock(&self.state.requests).get(path)?.last().cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
