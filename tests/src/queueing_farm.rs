//! A stand-in farm with slots, a queue, warm pages and a fixed service time: it renders nothing.
//!
//! Invariant: every job whose service begins is in the ledger, with its id, also if it is then broken off.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_shared::{job::RenderJob, refusal::Refusal, wire};
use tokio::sync::{Semaphore, watch};

use crate::{
    farm::{FILE, refusal},
    loopback::{Body, BreakOff, Loopback, full},
};

/// The size of a farm.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Jobs that are served at once.
    pub slots: usize,
    /// Jobs that can wait.
    pub queue: usize,
    /// Accounts whose pages are kept.
    pub pages: usize,
    /// How long a job holds its slot.
    pub service_time: Duration,
}

/// Jobs whose service has begun, of all farms that share it.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<HashMap<String, usize>>);

impl Ledger {
    /// The number of jobs.
    #[must_use]
    pub fn jobs(&self) -> usize {
        lock(&self.0).len()
    }

    /// The number of jobs that began more than once.
    #[must_use]
    pub fn repeated(&self) -> usize {
        lock(&self.0).values().filter(|began| **began > 1).count()
    }
}

#[derive(Debug)]
struct State {
    size: Size,
    ledger: Arc<Ledger>,
    slots: Semaphore,
    /// Jobs that have a slot or wait for one.
    jobs: AtomicUsize,
    draining: AtomicBool,
    frozen: watch::Sender<bool>,
    warm: Mutex<VecDeque<String>>,
    served: AtomicUsize,
    served_warm: AtomicUsize,
}

/// A running farm; dropping it is a kill.
#[derive(Debug)]
pub struct QueueingFarm {
    server: Loopback,
    state: Arc<State>,
}

impl QueueingFarm {
    /// Starts a farm at this address, or on a free port.
    pub async fn start(
        token: &str,
        address: Option<SocketAddr>,
        size: Size,
        ledger: &Arc<Ledger>,
    ) -> Result<Self> {
        let state = Arc::new(State {
            size,
            ledger: Arc::clone(ledger),
            slots: Semaphore::new(size.slots),
            jobs: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            frozen: watch::Sender::new(false),
            warm: Mutex::default(),
            served: AtomicUsize::new(0),
            served_warm: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        let expected = format!("Bearer {token}");
        let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = Loopback::start_at(address, move |request: Request<Incoming>| {
            let state = Arc::clone(&shared);
            let is_authorised =
                request.headers().get(header::AUTHORIZATION).is_some_and(|value| value == &expected);
            async move {
                state.thawed().await;
                if !is_authorised {
                    return Ok(refusal(&Refusal::Unauthorized));
                }
                let response = state.answer(request).await?;
                state.thawed().await;
                Ok(response)
            }
        })
        .await?;
        Ok(Self { server, state })
    }

    /// Its `--farm-url`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Answers nothing while it is frozen, as after SIGSTOP.
    pub fn freeze(&self, frozen: bool) {
        self.state.frozen.send_replace(frozen);
    }

    /// Refuses new jobs and waits for the running ones, as after SIGTERM.
    pub async fn drain(&self) {
        self.state.draining.store(true, Ordering::SeqCst);
        while self.state.jobs.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The last response leaves.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    /// The number of jobs that were served to their end.
    #[must_use]
    pub fn served(&self) -> usize {
        self.state.served.load(Ordering::SeqCst)
    }

    /// The number of served jobs whose account had a page.
    #[must_use]
    pub fn served_warm(&self) -> usize {
        self.state.served_warm.load(Ordering::SeqCst)
    }
}

/// Counts a job as long as it exists.
struct JobCount<'s>(&'s AtomicUsize);

impl Drop for JobCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl State {
    async fn thawed(&self) {
        let _ = self.frozen.subscribe().wait_for(|frozen| !frozen).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BreakOff> {
        let Size { slots, queue, service_time, .. } = self.size;
        let jobs = self.jobs.load(Ordering::SeqCst);
        let is_draining = self.draining.load(Ordering::SeqCst);
        let (head, body) = request.into_parts();
        if head.method == Method::DELETE {
            return Response::builder().status(204).body(full("")).map_err(|_| BreakOff);
        }
        if head.method == Method::GET {
            if is_draining {
                return Ok(closing(refusal(&Refusal::Draining)));
            }
            let response = Response::builder().status(204).header(wire::LOAD_PERCENT, jobs * 100 / slots);
            return response.body(full("")).map_err(|_| BreakOff);
        }
        let body = body.collect().await.map_err(|_| BreakOff)?.to_bytes();
        let Ok(job) = serde_json::from_slice::<RenderJob>(&body) else {
            return Ok(refusal(&Refusal::InvalidJob));
        };
        if is_draining {
            return Ok(closing(refusal(&Refusal::Draining)));
        }
        let jobs = self.jobs.fetch_add(1, Ordering::SeqCst);
        let _count = JobCount(&self.jobs);
        let must_wait = jobs >= slots && head.headers.contains_key(wire::NO_QUEUE);
        if must_wait || jobs >= slots + queue {
            return Ok(refusal(&Refusal::QueueFull { retry_after: 1 }));
        }
        let _slot = self.slots.acquire().await.map_err(|_| BreakOff)?;
        let id = head.headers.get(wire::JOB_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        *lock(&self.ledger.0).entry(id.to_owned()).or_default() += 1;
        tokio::time::sleep(service_time).await;
        self.thawed().await;
        self.served.fetch_add(1, Ordering::SeqCst);
        if self.use_page(job.account.as_str()) {
            self.served_warm.fetch_add(1, Ordering::SeqCst);
        }
        let content_type = job.output.format().content_type();
        let response = Response::builder().header(header::CONTENT_TYPE, content_type);
        response.body(full(FILE)).map_err(|_| BreakOff)
    }

    /// Whether the account had a page. It has one from now on.
    fn use_page(&self, account: &str) -> bool {
        let mut warm = lock(&self.warm);
        let known = warm.iter().position(|known| known == account);
        if let Some(index) = known {
            warm.remove(index);
        }
        warm.push_back(account.to_owned());
        if warm.len() > self.size.pages {
            warm.pop_front();
        }
        known.is_some()
    }
}

fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
