//! A reverse proxy with several farms behind one address, which chooses the farm by the header
//! [`wire::ACCOUNT`], as a proxy with consistent hashing does.

use std::{collections::HashSet, net::SocketAddr, sync::Arc, sync::Mutex, sync::PoisonError};

use anyhow::Result;
use bytes::Bytes;
use futures::TryStreamExt as _;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_shared::wire;

use crate::loopback::{Body, BreakOff, Loopback, full, streamed};

/// A running proxy. It closes a connection to a farm when its own caller disconnects.
#[derive(Debug)]
pub struct HashingProxy {
    server: Loopback,
    methods: Arc<Mutex<HashSet<(usize, String)>>>,
}

impl HashingProxy {
    /// Starts a proxy in front of these farms.
    pub async fn start(farms: Vec<SocketAddr>) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let methods = Arc::<Mutex<HashSet<_>>>::default();
        let (farms, seen) = (Arc::<[SocketAddr]>::from(farms), Arc::clone(&methods));
        let server = Loopback::start(move |request| {
            let account = request.headers().get(wire::ACCOUNT).map(|account| account.as_bytes().to_vec());
            let hash = account.unwrap_or_default().iter().map(|byte| usize::from(*byte)).sum::<usize>();
            let index = hash % farms.len();
            let method = request.method().to_string();
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert((index, method));
            forward(http.clone(), farms[index], request)
        })
        .await?;
        Ok(Self { server, methods })
    }

    /// Its `--farm-url`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The methods of all requests with the index of the farm that got them.
    #[must_use]
    pub fn methods(&self) -> HashSet<(usize, String)> {
        self.methods.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers 503 if the farm could not be reached, and 502 if it closed the connection.
async fn forward(
    http: reqwest::Client,
    farm: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, BreakOff> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| BreakOff)?.to_bytes();
    let path = head.uri.path();
    let mut forwarded = http.request(head.method.clone(), format!("http://{farm}{path}")).body(body);
    for (name, value) in head.headers.iter().filter(|(name, _)| **name != header::HOST) {
        forwarded = forwarded.header(name, value);
    }
    let response = match forwarded.send().await {
        Ok(response) => response,
        Err(error) => {
            let status = if error.is_connect() { 503 } else { 502 };
            return Response::builder().status(status).body(full("no farm")).map_err(|_| BreakOff);
        }
    };
    let mut answer = Response::builder().status(response.status());
    for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
        if let Some(value) = response.headers().get(&name) {
            answer = answer.header(name, value);
        }
    }
    let pieces = response.bytes_stream().map_ok(Bytes::from).map_err(|_| BreakOff);
    answer.body(streamed(pieces)).map_err(|_| BreakOff)
}
