//! The proxy of one page: from an accepted connection to a tunnel or a forwarded request.
//!
//! A page is recognised by the port of its proxy. Credentials instead of ports would cost Chromium a round
//! trip per connection, and the farm an intercepted request.
//!
//! Invariant: a connection belongs to the job that has the page when it is accepted, and is closed when the job releases the
//! page. A denied request looks to the page like an unreachable host: a failed tunnel or a closed connection.

use std::{
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
    rt::Executor,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{
        self, Client,
        connect::{Connected, Connection},
    },
    rt::TokioIo,
};
use parking_lot::Mutex;
use platen_program::error_chain;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_service::Service;

use super::{
    job::{ConnectError, CountingStream, Guard, JobEgress},
    policy::{HostPort, Verdict},
};

/// The proxy of a page, on its own loopback port. Dropping it closes the port and all its connections.
#[derive(Debug)]
pub(crate) struct PageProxy {
    port: u16,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    guard: Arc<Guard>,
    /// The verdict on requests while no job has the page.
    unbound_verdict: Verdict,
    bound: Mutex<Option<Arc<BoundJob>>>,
    /// A connection was accepted since a job was bound, or while no job had the page.
    used: AtomicBool,
    used_without_job: AtomicBool,
    closed: CancellationToken,
}

/// Lets a job use the proxy until it is dropped.
#[derive(Debug)]
pub(crate) struct JobBinding {
    shared: Arc<Shared>,
    _ended: DropGuard,
}

impl PageProxy {
    pub(super) async fn open(guard: Arc<Guard>, unbound_verdict: Verdict) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        guard.own_ports.lock().push(port);
        let shared = Arc::new(Shared {
            guard,
            unbound_verdict,
            bound: Mutex::default(),
            used: AtomicBool::new(false),
            used_without_job: AtomicBool::new(false),
            closed: CancellationToken::new(),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Ok(Self { port, shared, listening })
    }

    /// The proxy server in the form that Chromium takes.
    pub(crate) fn address(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    pub(crate) fn bind(&self, job: &Arc<JobEgress>) -> JobBinding {
        let ended = CancellationToken::new();
        let tasks = JobTasks { job: Arc::clone(job), ended: ended.clone() };
        self.shared.used.store(false, Ordering::Relaxed);
        *self.shared.bound.lock() = Some(Arc::new(BoundJob { tasks, client: OnceLock::new() }));
        JobBinding { shared: Arc::clone(&self.shared), _ended: ended.drop_guard() }
    }

    /// Whether the current or latest job has made a connection.
    pub(crate) fn is_used(&self) -> bool {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Whether a connection was ever made while no job had the page.
    pub(crate) fn was_used_without_job(&self) -> bool {
        self.shared.used_without_job.load(Ordering::Relaxed)
    }
}

impl Drop for PageProxy {
    fn drop(&mut self) {
        self.listening.abort();
        self.shared.closed.cancel();
        let mut ports = self.shared.guard.own_ports.lock();
        if let Some(index) = ports.iter().position(|port| *port == self.port) {
            ports.swap_remove(index);
        }
    }
}

impl Drop for JobBinding {
    fn drop(&mut self) {
        *self.shared.bound.lock() = None;
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (stream, _) = platen_program::accept(&listener).await;
        let bound = shared.bound.lock().clone();
        let used = if bound.is_some() { &shared.used } else { &shared.used_without_job };
        used.store(true, Ordering::Relaxed);
        tokio::spawn(serve(stream, Arc::clone(&shared), bound));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, bound: Option<Arc<BoundJob>>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| respond(request, &shared, bound.as_ref()));
    let connection = http1::Builder::new()
        .preserve_header_case(true)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let served = match &bound {
        Some(bound) => bound.tasks.run(connection).await,
        None => shared.closed.run_until_cancelled(connection).await,
    };
    if let Some(Err(error)) = served {
        tracing::trace!(error = error_chain(&error), "a connection of a page failed");
    }
}

/// Why a request has no response: its connection is closed instead.
#[derive(Debug, thiserror::Error)]
enum NoResponse {
    #[error("not a request to a proxy")]
    NotForProxy,
    #[error("no job has the page")]
    NoJob,
    #[error("the request was not forwarded")]
    Forward(#[from] legacy::Error),
}

type Body = Either<Incoming, Empty<Bytes>>;

async fn respond(
    request: Request<Incoming>,
    shared: &Shared,
    bound: Option<&Arc<BoundJob>>,
) -> Result<Response<Body>, NoResponse> {
    let is_connect = request.method() == Method::CONNECT;
    if !is_connect && request.uri().scheme_str() != Some("http") {
        return Err(NoResponse::NotForProxy);
    }
    let target = HostPort::from_uri(request.uri()).ok_or(NoResponse::NotForProxy)?;
    let Some(bound) = bound else {
        shared.guard.report("", &target, None, shared.unbound_verdict);
        return Err(NoResponse::NoJob);
    };
    if is_connect { Ok(bound.tunnel(request, target).await) } else { Ok(bound.forward(request).await?) }
}

#[derive(Debug)]
struct BoundJob {
    tasks: JobTasks,
    /// Forwards plain HTTP. It keeps connections open and reuses them within the job. Created by the first
    /// request, because most jobs never send one.
    client: OnceLock<Client<JobConnector, Incoming>>,
}

impl BoundJob {
    /// Connects to `target`, and starts to copy between it and the page.
    async fn tunnel(&self, request: Request<Incoming>, target: HostPort) -> Response<Body> {
        let mut response = Response::new(Either::Right(Empty::new()));
        match self.tasks.job.connect(target).await {
            Ok(host) => self.tasks.execute(copy(request, host)),
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "no tunnel");
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
        }
        response
    }

    /// Forwards a request, and adds no header that reveals the proxy.
    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<Body>, legacy::Error> {
        // As tolerant of servers as browsers are.
        let client = self.client.get_or_init(|| {
            Client::builder(self.tasks.clone())
                .http1_ignore_invalid_headers_in_responses(true)
                .http1_allow_spaces_after_header_name_in_responses(true)
                .http1_allow_obsolete_multiline_headers_in_responses(true)
                .http1_preserve_header_case(true)
                .build(JobConnector(Arc::clone(&self.tasks.job)))
        });
        remove_hop_by_hop_headers(request.headers_mut());
        let mut response = client.request(request).await?;
        remove_hop_by_hop_headers(response.headers_mut());
        Ok(response.map(Either::Left))
    }
}

async fn copy(request: Request<Incoming>, mut host: CountingStream) {
    if let Ok(page) = hyper::upgrade::on(request).await {
        // An error ends the tunnel, which closes both connections.
        let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(page), &mut host).await;
    }
}

/// Runs tasks until the job releases the page.
#[derive(Debug, Clone)]
struct JobTasks {
    job: Arc<JobEgress>,
    ended: CancellationToken,
}

impl JobTasks {
    async fn run<F: Future>(&self, task: F) -> Option<F::Output> {
        self.ended.run_until_cancelled(task).await
    }
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for JobTasks {
    fn execute(&self, task: F) {
        let tasks = self.clone();
        tokio::spawn(async move { tasks.run(task).await.is_some() });
    }
}

/// Makes the connections of a job's forwarded requests.
#[derive(Debug, Clone)]
struct JobConnector(Arc<JobEgress>);

impl Service<Uri> for JobConnector {
    type Response = TokioIo<CountingStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let job = Arc::clone(&self.0);
        Box::pin(async move {
            let target = HostPort::from_uri(&uri).ok_or(ConnectError::Denied)?;
            job.connect(target).await.map(TokioIo::new)
        })
    }
}

impl Connection for CountingStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Headers about one connection (RFC 9110, section 7.6.1), and headers for proxies.
const HOP_BY_HOP_HEADERS: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
];

fn remove_hop_by_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP_HEADERS) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_headers_are_removed() {
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
        remove_hop_by_hop_headers(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x-yours"]);
    }
}
