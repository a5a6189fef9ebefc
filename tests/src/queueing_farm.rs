//! A stand-in farm with slots, a queue, warm pages and a fixed service time: it renders nothing.
//!
//! Invariant: every job whose service begins is in the ledger, with its id, also if it is then broken off.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_shared::{job::RenderJob, refusal::Refusal, wire};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

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
    /// Its [`wire::FARM_ID`].
    id: u64,
    size: Size,
    ledger: Arc<Ledger>,
    slots: Arc<Semaphore>,
    /// Jobs that have a slot or wait for one.
    jobs: AtomicUsize,
    /// The most jobs that were served at once.
    max_served_at_once: AtomicUsize,
    serving: AtomicUsize,
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
            id: rand::random(),
            size,
            ledger: Arc::clone(ledger),
            slots: Arc::new(Semaphore::new(size.slots)),
            jobs: AtomicUsize::new(0),
            max_served_at_once: AtomicUsize::new(0),
            serving: AtomicUsize::new(0),
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
                if request.method() == Method::GET {
                    return state.readiness();
                }
                if !is_authorised {
                    return Ok(refusal(&Refusal::Unauthorized));
                }
                let mut response = state.answer(request).await?;
                response.headers_mut().insert(wire::FARM_ID, state.id.into());
                if state.draining.load(Ordering::SeqCst) {
                    response
                        .headers_mut()
                        .insert(header::CONNECTION, header::HeaderValue::from_static("close"));
                }
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

    /// Is not ready, and ends when it has no job any more, as after SIGTERM.
    pub async fn drain(&self) {
        self.state.draining.store(true, Ordering::SeqCst);
        // As long as a farm accepts jobs after the signal.
        tokio::time::sleep(Duration::from_secs(3)).await;
        while self.state.jobs.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The number of jobs that were served to their end.
    #[must_use]
    pub fn served(&self) -> usize {
        self.state.served.load(Ordering::SeqCst)
    }

    /// The most jobs that were served at the same time.
    #[must_use]
    pub fn max_served_at_once(&self) -> usize {
        self.state.max_served_at_once.load(Ordering::SeqCst)
    }

    /// The number of served jobs whose account had a page.
    #[must_use]
    pub fn served_warm(&self) -> usize {
        self.state.served_warm.load(Ordering::SeqCst)
    }
}

impl Drop for QueueingFarm {
    /// Its connections end one after the other. Meanwhile the slots of the first ones must not reach the last ones.
    fn drop(&mut self) {
        self.freeze(true);
    }
}

/// A job that has a slot or waits for one.
#[derive(Debug)]
struct Place {
    farm: Weak<State>,
    slot: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(farm) = self.farm.upgrade() {
            farm.jobs.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl State {
    async fn thawed(&self) {
        let _ = self.frozen.subscribe().wait_for(|frozen| !frozen).await;
    }

    fn readiness(&self) -> Result<Response<Body>, BreakOff> {
        let status = if self.draining.load(Ordering::SeqCst) { 503 } else { 200 };
        let response = Response::builder().status(status).header(wire::FARM_ID, self.id);
        response.body(full("")).map_err(|_| BreakOff)
    }

    /// A slot, or `None` if the queue is full.
    async fn place(self: &Arc<Self>) -> Option<Place> {
        let jobs = self.jobs.fetch_add(1, Ordering::SeqCst);
        let mut place = Place { farm: Arc::downgrade(self), slot: None };
        if jobs < self.size.slots + self.size.queue {
            place.slot = Some(Arc::clone(&self.slots).acquire_owned().await.ok()?);
        }
        place.slot.is_some().then_some(place)
    }

    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, BreakOff> {
        let (head, body) = request.into_parts();
        let id = head.headers.get(wire::REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let body = body.collect().await.map_err(|_| BreakOff)?.to_bytes();
        let Ok(job) = serde_json::from_slice::<RenderJob>(&body) else {
            return Ok(refusal(&Refusal::InvalidJob));
        };
        let place = self.place().await;
        let Some(_place) = place else { return Ok(refusal(&Refusal::QueueFull { retry_after: 1 })) };
        *lock(&self.ledger.0).entry(id.to_owned()).or_default() += 1;
        let serving = self.serving.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_served_at_once.fetch_max(serving, Ordering::SeqCst);
        tokio::time::sleep(self.size.service_time).await;
        self.thawed().await;
        self.serving.fetch_sub(1, Ordering::SeqCst);
        self.served.fetch_add(1, Ordering::SeqCst);
        if self.use_page(job.account.as_str()) {
            self.served_warm.fetch_add(1, Ordering::SeqCst);
        }
        let content_type = job.options.output.format().content_type();
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
