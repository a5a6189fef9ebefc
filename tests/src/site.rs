//! A web site on 127.0.0.1 for renders of a URL, reached by the name `site.test`.
//!
//! Invariant: every request is remembered, so that a case can tell that nobody came.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use tokio::sync::watch;

use crate::loopback::{Loopback, full};

/// The name the server under test is told to find at 127.0.0.1.
pub const HOST: &str = "site.test";

/// What a path answers with.
#[derive(Debug, Clone)]
pub struct Reply {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    delay: Duration,
    latch: Option<watch::Receiver<bool>>,
}

impl Reply {
    /// An HTML page.
    pub fn page(html: impl Into<Bytes>) -> Self {
        Self::of("text/html; charset=utf-8", html)
    }

    /// A body of some media type.
    pub fn of(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: vec![("content-type", content_type.to_owned())],
            body: body.into(),
            delay: Duration::ZERO,
            latch: None,
        }
    }

    /// A redirect.
    #[must_use]
    pub fn redirect(to: &str) -> Self {
        Self::page("").with_status(StatusCode::FOUND).with_header(header::LOCATION.as_str(), to)
    }

    /// With another status.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// With one more header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Answers after a while only.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Answers once the latch is open only.
    #[must_use]
    pub fn behind(self, latch: &Latch) -> Self {
        Self { latch: Some(latch.0.subscribe()), ..self }
    }
}

/// Holds replies back until it is opened or dropped.
#[derive(Debug)]
pub struct Latch(watch::Sender<bool>);

impl Latch {
    /// A closed latch.
    #[must_use]
    pub fn closed() -> Self {
        Self(watch::channel(false).0)
    }

    /// Lets every reply behind it go.
    pub fn open(&self) {
        self.0.send_replace(true);
    }
}

#[derive(Debug, Default)]
struct State {
    replies: Mutex<HashMap<String, Reply>>,
    requests: Mutex<HashMap<String, Vec<HeaderMap>>>,
}

/// A running site.
#[derive(Debug)]
pub struct Site {
    server: Loopback,
    state: Arc<State>,
}

impl Site {
    /// Starts one that answers 404 everywhere.
    ///
    /// # Errors
    /// When no port is to be had.
    pub async fn start() -> Result<Self> {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let server = Loopback::start(move |request| {
            let path = request.uri().path().to_owned();
            lock(&shared.requests).entry(path.clone()).or_default().push(request.headers().clone());
            let reply = lock(&shared.replies).get(&path).cloned();
            async move {
                let reply = reply.unwrap_or_else(|| Reply::page("").with_status(StatusCode::NOT_FOUND));
                tokio::time::sleep(reply.delay).await;
                if let Some(mut latch) = reply.latch {
                    let _ = latch.wait_for(|open| *open).await;
                }
                let mut response = Response::builder().status(reply.status);
                for (name, value) in reply.headers {
                    response = response.header(name, value);
                }
                response.body(full(reply.body)).map_err(|_| crate::loopback::BreakOff)
            }
        })
        .await?;
        Ok(Self { server, state })
    }

    /// Answers like this at a path from now on, and gives its URL by name.
    pub fn put(&self, path: &str, reply: Reply) -> String {
        lock(&self.state.replies).insert(path.to_owned(), reply);
        self.url(path)
    }

    /// The URL of a path, by name.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{HOST}:{}{path}", self.server.address().port())
    }

    /// The URL of a path, by address: one that a render may not reach.
    #[must_use]
    pub fn private_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// How often a path was asked for.
    #[must_use]
    pub fn hits(&self, path: &str) -> usize {
        lock(&self.state.requests).get(path).map_or(0, Vec::len)
    }

    /// The headers of the last request for a path.
    #[must_use]
    pub fn last_headers(&self, path: &str) -> Option<HeaderMap> {
        lock(&self.state.requests).get(path)?.last().cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_answers_as_told_and_counts() {
        let site = Site::start().await.unwrap();
        let url = site.put("/a", Reply::page("hello").with_status(StatusCode::IM_A_TEAPOT));
        assert_eq!(url, site.url("/a"));
        let answer = reqwest::get(site.private_url("/a")).await.unwrap();
        assert_eq!(answer.status(), 418);
        assert_eq!(answer.text().await.unwrap(), "hello");
        assert_eq!(reqwest::get(site.private_url("/b")).await.unwrap().status(), 404);
        assert_eq!((site.hits("/a"), site.hits("/b"), site.hits("/c")), (1, 1, 0));
    }

    #[tokio::test]
    async fn a_gate_holds_a_reply_back() {
        let (site, latch) = (Site::start().await.unwrap(), Latch::closed());
        site.put("/held", Reply::page("at last").behind(&latch));
        let asked = tokio::spawn(reqwest::get(site.private_url("/held")));
        while site.hits("/held") == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!asked.is_finished());
        latch.open();
        assert_eq!(asked.await.unwrap().unwrap().text().await.unwrap(), "at last");
    }
}
