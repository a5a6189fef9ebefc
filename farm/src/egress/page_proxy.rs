//! One page's port of the proxy.
//!
//! A port, rather than credentials, tells whose request it is: credentials cost Chromium a round
//! trip for each connection and the farm a pause of each request, a listening socket next to nothing.
//!
//! Invariant: a request belongs to the job that had the page when its connection was made, and to
//! none if none had; when the job lets go of the page, all its connections are cut. A request that
//! is not allowed is answered as by a host that cannot be reached: never with something a page
//! could be made of, or tell from another failure.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::{client::legacy, rt::TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout_at,
};
use tokio_util::sync::CancellationToken;
use url::Host;

use super::{
    Egress, counting_stream::CountingStream, dial, forward::Forwarder, job_egress::JobEgress,
    verdict::Verdict,
};

/// A port. It is closed when dropped, and everything that came through it is cut.
#[derive(Debug)]
pub(crate) struct PageProxy {
    port: u16,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    egress: Egress,
    /// On requests that no job answers for.
    jobless: Verdict,
    holder: Mutex<Option<Arc<Holder>>>,
    used: AtomicBool,
    closed: CancellationToken,
}

/// The job that has the page.
#[derive(Debug)]
struct Holder {
    traffic: Arc<JobEgress>,
    ended: CancellationToken,
    /// Made by the first plain request: most jobs make none.
    forwarder: OnceLock<Forwarder>,
}

/// The right of a job to go through a proxy, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    shared: Arc<Shared>,
    ended: CancellationToken,
}

impl PageProxy {
    pub(super) async fn open(egress: &Egress, jobless: Verdict) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        egress.forbid_port(port);
        let shared = Arc::new(Shared {
            egress: egress.clone(),
            jobless,
            holder: Mutex::default(),
            used: AtomicBool::new(false),
            closed: CancellationToken::new(),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Ok(Self { port, shared, listening })
    }

    /// What Chromium calls its proxy server.
    pub(crate) fn address(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Lets a job through.
    pub(crate) fn admit(&self, traffic: &Arc<JobEgress>) -> Pass {
        let ended = CancellationToken::new();
        let holder =
            Holder { traffic: Arc::clone(traffic), ended: ended.clone(), forwarder: OnceLock::new() };
        *self.shared.holder() = Some(Arc::new(holder));
        Pass { shared: Arc::clone(&self.shared), ended }
    }

    /// Whether anything ever came.
    pub(crate) fn is_used(&self) -> bool {
        self.shared.used.load(Ordering::Relaxed)
    }
}

impl Drop for PageProxy {
    fn drop(&mut self) {
        self.listening.abort();
        self.shared.closed.cancel();
        self.shared.egress.0.own_ports.remove(self.port);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        *self.shared.holder() = None;
        self.ended.cancel();
    }
}

impl Shared {
    fn holder(&self) -> MutexGuard<'_, Option<Arc<Holder>>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                shared.used.store(true, Ordering::Relaxed);
                let holder = shared.holder().clone();
                tokio::spawn(serve(stream, Arc::clone(&shared), holder));
            }
            Err(error) => {
                tracing::warn!(%error, "a page's connection was not accepted");
                // No files left, most likely: others must close some first.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, holder: Option<Arc<Holder>>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let ended = holder.as_ref().map_or(&shared.closed, |holder| &holder.ended).clone();
    let until = holder.as_ref().map(|holder| holder.traffic.until());
    let service = service_fn(move |request| {
        let (shared, holder) = (Arc::clone(&shared), holder.clone());
        async move { answer(request, &shared, holder.as_ref()).await }
    });
    let connection = http1::Builder::new()
        .preserve_header_case(true)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let serving = ended.run_until_cancelled(connection);
    let served = match until {
        None => serving.await,
        Some(until) => timeout_at(until, serving).await.unwrap_or(None),
    };
    if let Some(Err(error)) = served {
        tracing::trace!(error = &error as &dyn std::error::Error, "a page's connection ended early");
    }
}

/// Why a request has no answer: its connection is closed instead.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("not a request for a proxy")]
    NotForProxies,
    #[error("no job")]
    NoJob,
    #[error("not forwarded")]
    Forward(#[from] legacy::Error),
}

type Body = Either<Incoming, Empty<Bytes>>;

async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    holder: Option<&Arc<Holder>>,
) -> Result<Response<Body>, Unanswered> {
    let uri = request.uri();
    let tunnel = request.method() == Method::CONNECT;
    let scheme_is_known = tunnel || uri.scheme_str() == Some("http");
    let host = uri.host().filter(|_| scheme_is_known).and_then(|host| Host::parse(host).ok());
    let host = host.ok_or(Unanswered::NotForProxies)?;
    let port = uri.port_u16().unwrap_or(80);
    let Some(holder) = holder else {
        shared.egress.report("", &host, port, None, shared.jobless);
        return Err(Unanswered::NoJob);
    };
    if tunnel {
        return Ok(match dial::connect(&holder.traffic, host, port).await {
            Ok(origin) => {
                tokio::spawn(carry(request, origin, Arc::clone(holder)));
                Response::new(Either::Right(Empty::new()))
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "no tunnel");
                let mut response = Response::new(Either::Right(Empty::new()));
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
                response
            }
        });
    }
    let forwarder = holder.forwarder.get_or_init(|| Forwarder::new(&holder.traffic, &holder.ended));
    Ok(forwarder.forward(request).await?.map(Either::Left))
}

/// Carries bytes between a page and a host until one of them, or the job, ends.
async fn carry(request: Request<Incoming>, mut origin: CountingStream, holder: Arc<Holder>) {
    let carrying = async {
        if let Ok(page) = hyper::upgrade::on(request).await {
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(page), &mut origin).await;
        }
    };
    let _ = timeout_at(holder.traffic.until(), holder.ended.run_until_cancelled(carrying)).await;
}
