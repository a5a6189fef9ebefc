//! Plain HTTP of a page, forwarded.
//!
//! Invariant: nothing is added that tells of the proxy, and what belongs to one connection only is
//! not carried over to the next. Connections to a host are kept and used again within one job, and
//! by no other. Bodies are streamed both ways.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::{
    HeaderMap, Request, Response, Uri,
    body::Incoming,
    header::{self, HeaderName},
    rt::Executor,
};
use hyper_util::{
    client::legacy::{self, Client},
    rt::TokioIo,
};
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use url::Host;

use super::{
    counting_stream::CountingStream,
    dial::{self, DialError},
    job_egress::JobEgress,
};

/// Forwards the requests of one job.
#[derive(Debug)]
pub(super) struct Forwarder(Client<Dialler, Incoming>);

impl Forwarder {
    /// A forwarder whose connections end with `ended`.
    pub(super) fn new(traffic: &Arc<JobEgress>, ended: &CancellationToken) -> Self {
        let executor = JobTasks { ended: ended.clone(), traffic: Arc::clone(traffic) };
        // As forgiving of servers as browsers are.
        let client = Client::builder(executor)
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_preserve_header_case(true)
            .build(Dialler(Arc::clone(traffic)));
        Self(client)
    }

    /// Sends a request on and brings back the answer.
    pub(super) async fn forward(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        strip(request.headers_mut());
        let mut response = self.0.request(request).await?;
        strip(response.headers_mut());
        Ok(response)
    }
}

/// Headers that are about one connection (RFC 9110, section 7.6.1), and those for proxies.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
];

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Connects to where a request goes.
#[derive(Debug, Clone)]
struct Dialler(Arc<JobEgress>);

impl Service<Uri> for Dialler {
    type Response = TokioIo<CountingStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let traffic = Arc::clone(&self.0);
        Box::pin(async move {
            let host = uri.host().and_then(|host| Host::parse(host).ok()).ok_or(DialError::NotAllowed)?;
            dial::connect(&traffic, host, uri.port_u16().unwrap_or(80)).await.map(TokioIo::new)
        })
    }
}

/// Runs what belongs to a job's connections, until the job ends.
#[derive(Debug, Clone)]
struct JobTasks {
    ended: CancellationToken,
    traffic: Arc<JobEgress>,
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for JobTasks {
    fn execute(&self, future: F) {
        let (ended, until) = (self.ended.clone(), self.traffic.until());
        tokio::spawn(async move {
            let _ = tokio::time::timeout_at(until, ended.run_until_cancelled(future)).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_one_connection_stays_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "h"),
            ("connection", "keep-alive, X-Mine"),
            ("x-mine", "1"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic x"),
            ("upgrade", "h2c"),
            ("content-length", "3"),
            ("x-yours", "2"),
        ] {
            headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x-yours"]);
    }
}
