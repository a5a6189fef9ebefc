//! A stand-in farm: it renders nothing, records the jobs that it receives, and answers as configured. It can have slots,
//! a queue and a service time.
//!
//! Invariant: every job whose service begins is recorded, also if it is then broken off; a request without the right
//! token or a valid job is not. The answer depends on the account, so cases can share one stand-in.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_shared::{job::RenderJob, refusal::Refusal, wire};
use tokio::{
    sync::{Semaphore, watch},
    time::sleep,
};

pub use crate::behaviour::{Behaviour, FILE, pattern_byte};
use crate::{
    behaviour::{behave, refusal},
    latch::Latch,
    loopback::{ANY_PORT, Body, BreakOff, Loopback, full},
    wait,
};

#[derive(Debug, Clone)]
pub struct Received {
    pub headers: HeaderMap,
    pub job: RenderJob,
}

/// Jobs whose service has begun, of all farms that share it, oldest first.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Vec<Received>>);

impl Ledger {
    pub fn jobs(&self) -> usize {
        lock(&self.0).len()
    }

    /// How many of them had begun before.
    pub fn repeated(&self) -> usize {
        let jobs = lock(&self.0);
        let ids: HashSet<_> = jobs.iter().map(|job| job.headers.get(wire::REQUEST_ID)).collect();
        jobs.len() - ids.len()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Jobs that are served at once.
    pub slots: usize,
    /// Jobs that can wait.
    pub queue: usize,
    /// Accounts whose pages are kept.
    pub pages: usize,
    /// The time for which a job holds its slot before it is answered.
    pub service_time: Duration,
}

impl Size {
    /// More slots than any test has jobs.
    pub const UNLIMITED: Self = Self { slots: 1 << 20, queue: 0, pages: 0, service_time: Duration::ZERO };
}

#[derive(Debug)]
struct State {
    token: String,
    /// Its [`wire::FARM_ID`].
    id: u64,
    size: Size,
    behaviours: Mutex<HashMap<String, Behaviour>>,
    ledger: Arc<Ledger>,
    rejected: AtomicU64,
    slots: Semaphore,
    /// Places of jobs that have a slot or wait for one.
    places: Semaphore,
    draining: AtomicBool,
    frozen: watch::Sender<bool>,
    warm: Mutex<VecDeque<String>>,
    max_served_at_once: AtomicUsize,
    served: AtomicUsize,
    served_warm: AtomicUsize,
}

/// A running stand-in; dropping it is a kill.
#[derive(Debug)]
pub struct StandInFarm {
    server: Loopback,
    state: Arc<State>,
}

impl StandInFarm {
    /// Starts a farm that accepts jobs with this token.
    pub async fn start(token: &str) -> Result<Self> {
        Self::start_with(token, None, Size::UNLIMITED, &Arc::default()).await
    }

    /// Starts a farm of this size, on a free port if no address is given.
    pub async fn start_with(
        token: &str,
        address: Option<SocketAddr>,
        size: Size,
        ledger: &Arc<Ledger>,
    ) -> Result<Self> {
        let state = Arc::new(State {
            token: token.to_owned(),
            id: rand::random(),
            size,
            behaviours: Mutex::default(),
            ledger: Arc::clone(ledger),
            rejected: AtomicU64::default(),
            slots: Semaphore::new(size.slots),
            places: Semaphore::new(size.slots + size.queue),
            draining: AtomicBool::default(),
            frozen: watch::Sender::new(false),
            warm: Mutex::default(),
            max_served_at_once: AtomicUsize::default(),
            served: AtomicUsize::default(),
            served_warm: AtomicUsize::default(),
        });
        let shared = Arc::clone(&state);
        let server = Loopback::start_at(address.unwrap_or(ANY_PORT), move |request| {
            let state = Arc::clone(&shared);
            async move { state.answer(request).await }
        });
        Ok(Self { server: server.await?, state })
    }

    /// Its `--farm-url`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Answers the jobs of an account like this from now on.
    pub fn behave(&self, account: &str, behaviour: Behaviour) {
        lock(&self.state.behaviours).insert(account.to_owned(), behaviour);
    }

    /// Holds the files of an account back until the latch is open.
    pub fn hold(&self, account: &str) -> Latch {
        let latch = Latch::closed();
        self.behave(account, Behaviour::Held(latch.waiter()));
        latch
    }

    /// Answers nothing while it is frozen, as after SIGSTOP.
    pub fn freeze(&self, frozen: bool) {
        self.state.frozen.send_replace(frozen);
    }

    /// Is not ready, and ends when it has no job any more, as after SIGTERM.
    pub async fn drain(&self) {
        self.state.draining.store(true, Ordering::SeqCst);
        // For as long as a farm accepts jobs after the signal.
        sleep(Duration::from_secs(3)).await;
        let Size { slots, queue, .. } = self.state.size;
        let _ = self.state.places.acquire_many(u32::try_from(slots + queue).unwrap_or(u32::MAX)).await;
    }

    /// The jobs of an account, oldest first.
    pub fn received_from(&self, account: &str) -> Vec<Received> {
        lock(&self.state.ledger.0).iter().filter(|it| it.job.account.as_str() == account).cloned().collect()
    }

    /// Waits until the account's first job is received.
    pub async fn until_received_from(&self, account: &str) -> Result<()> {
        wait::until("the job reaches the farm", || !self.received_from(account).is_empty()).await
    }

    pub fn received_as(&self, request_id: &str) -> Result<Received> {
        let received = lock(&self.state.ledger.0);
        let job =
            received.iter().find(|it| it.headers.get(wire::REQUEST_ID).is_some_and(|id| id == request_id));
        job.cloned().with_context(|| format!("the farm received no job as {request_id}"))
    }

    pub fn received_in_all(&self) -> usize {
        self.state.ledger.jobs()
    }

    /// The number of requests without the right token or a valid job.
    pub fn rejected(&self) -> u64 {
        self.state.rejected.load(Ordering::SeqCst)
    }

    /// The number of jobs that held their slots to the end.
    pub fn served(&self) -> usize {
        self.state.served.load(Ordering::SeqCst)
    }

    /// How many of them were of an account that had a page.
    pub fn served_warm(&self) -> usize {
        self.state.served_warm.load(Ordering::SeqCst)
    }

    /// The most jobs that were served at the same time.
    pub fn max_served_at_once(&self) -> usize {
        self.state.max_served_at_once.load(Ordering::SeqCst)
    }
}

impl Drop for StandInFarm {
    /// Its connections end one after the other. Meanwhile the slots of the first ones must not reach the last ones.
    fn drop(&mut self) {
        self.freeze(true);
    }
}

impl State {
    async fn thawed(&self) {
        let _ = self.frozen.subscribe().wait_for(|frozen| !frozen).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BreakOff> {
        self.thawed().await;
        let (head, body) = request.into_parts();
        let is_draining = || self.draining.load(Ordering::SeqCst);
        if head.method == Method::GET && head.uri.path() == "/readyz" {
            let mut response = Response::new(full("ready\n"));
            response.headers_mut().insert(wire::FARM_ID, self.id.into());
            if is_draining() {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            return Ok(response);
        }
        let expected = format!("Bearer {}", self.token);
        let is_authorised = head.headers.get(header::AUTHORIZATION).is_some_and(|it| it == &expected);
        if !is_authorised || head.method != Method::POST || head.uri.path() != wire::JOBS_PATH {
            return Ok(self.reject(&Refusal::Unauthorized));
        }
        let body = body.collect().await.map_err(|_| BreakOff)?.to_bytes();
        let Ok(mut job) = serde_json::from_slice::<RenderJob>(&body) else {
            return Ok(self.reject(&Refusal::InvalidJob));
        };
        if job.template_files().any(|(_, content)| content.is_none()) {
            let mut response = Response::new(full(""));
            *response.status_mut() = StatusCode::from_u16(wire::CONTENTS_NEEDED).unwrap_or_default();
            response.headers_mut().insert(wire::FARM_ID, self.id.into());
            return Ok(response);
        }
        let mut response = self.serve(head.headers, job).await?;
        if is_draining() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        self.thawed().await;
        Ok(response)
    }

    fn reject(&self, reason: &Refusal) -> Response<Body> {
        self.rejected.fetch_add(1, Ordering::SeqCst);
        refusal(reason, self.id)
    }

    async fn serve(&self, headers: HeaderMap, job: RenderJob) -> Result<Response<Body>, BreakOff> {
        let Ok(_place) = self.places.try_acquire() else {
            return Ok(refusal(&Refusal::QueueFull, self.id));
        };
        let _slot = self.slots.acquire().await.map_err(|_| BreakOff)?;
        let served_at_once = self.size.slots - self.slots.available_permits();
        self.max_served_at_once.fetch_max(served_at_once, Ordering::SeqCst);
        let account = job.account.as_str().to_owned();
        let behaviour = lock(&self.behaviours).get(&account).cloned().unwrap_or(Behaviour::File);
        let content_type = job.options.output.format().content_type();
        lock(&self.ledger.0).push(Received { headers, job });
        // Even a sleep of no time lasts until the next tick of the timer.
        if !self.size.service_time.is_zero() {
            sleep(self.size.service_time).await;
        }
        self.thawed().await;
        self.served.fetch_add(1, Ordering::SeqCst);
        self.served_warm.fetch_add(usize::from(self.use_page(account)), Ordering::SeqCst);
        behave(behaviour, content_type, self.id).await
    }

    /// Whether the account had a page. It has one from now on.
    fn use_page(&self, account: String) -> bool {
        let mut warm = lock(&self.warm);
        let known = warm.iter().position(|known| *known == account);
        if let Some(index) = known {
            warm.remove(index);
        }
        warm.push_back(account);
        if warm.len() > self.size.pages {
            warm.pop_front();
        }
        known.is_some()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
