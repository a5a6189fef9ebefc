//! A farm that renders nothing: it remembers the jobs it was given and answers as it was told.
//!
//! Invariant: a job without the right token, or that does not parse as one, is never remembered
//! as received. What it answers is decided by the account, so that cases can share one.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_shared::{job::RenderJob, refusal::Refusal, wire};
use tokio::sync::watch;

use crate::loopback::{Body, BreakOff, Loopback, break_off_soon, full, streamed};

/// The file it answers with unless told otherwise.
pub const FILE: &[u8] = b"This is what the stand-in farm calls a file.";

/// One piece of a long file.
const PIECE: usize = 64 * 1024;

/// What it does with the jobs of an account.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Answers with [`FILE`].
    File,
    /// Answers with a file of this many bytes, see [`long_file`].
    LongFile(u64),
    /// Refuses, as a farm says so.
    Refuse(Refusal),
    /// Answers with this status, content type and body.
    Answer(u16, &'static str, &'static str),
    /// Promises a file of so many bytes and closes the connection after so many.
    BreakOff {
        /// The `content-length`; `None` is a chunked transfer.
        promised: Option<u64>,
        /// Bytes that do come.
        sent: u64,
    },
    /// Closes the connection without an answer.
    HangUp,
    /// Never answers.
    Stall,
    /// Answers when the job is cancelled, and says whether its page had begun to run.
    UntilCancelled {
        /// What it says.
        page_ran: bool,
    },
    /// Sends so many bytes of a file of twice the size, then nothing.
    StallAfter(u64),
    /// Answers with [`FILE`] after a while.
    Slow(Duration),
}

/// A job as it came in.
#[derive(Debug, Clone)]
pub struct Received {
    /// The headers.
    pub headers: HeaderMap,
    /// The job.
    pub job: RenderJob,
}

#[derive(Debug, Default)]
struct State {
    token: String,
    behaviours: Mutex<HashMap<String, Behaviour>>,
    received: Mutex<Vec<Received>>,
    turned_away: AtomicU64,
    cancelled: watch::Sender<HashSet<String>>,
}

/// A running stand-in.
#[derive(Debug)]
pub struct StandInFarm {
    server: Loopback,
    state: Arc<State>,
}

impl StandInFarm {
    /// Starts one that takes jobs from whoever shows `token`.
    ///
    /// # Errors
    /// When no port is to be had.
    pub async fn start(token: &str) -> Result<Self> {
        Self::start_at(token, ([127, 0, 0, 1], 0).into()).await
    }

    /// Starts one where another was.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn start_at(token: &str, address: SocketAddr) -> Result<Self> {
        let state = Arc::new(State { token: token.to_owned(), ..State::default() });
        let shared = Arc::clone(&state);
        let server = Loopback::start_at(address, move |request| answer(Arc::clone(&shared), request)).await?;
        Ok(Self { server, state })
    }

    /// The `--farm-url` of it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// From now on, does this with the jobs of an account.
    pub fn behave(&self, account: &str, behaviour: Behaviour) {
        lock(&self.state.behaviours).insert(account.to_owned(), behaviour);
    }

    /// The jobs of an account, oldest first.
    #[must_use]
    pub fn received_from(&self, account: &str) -> Vec<Received> {
        lock(&self.state.received).iter().filter(|it| it.job.account.as_str() == account).cloned().collect()
    }

    /// The job that came with a request id.
    ///
    /// # Errors
    /// When there is none.
    pub fn received_as(&self, request_id: &str) -> Result<Received> {
        let received = lock(&self.state.received);
        let job =
            received.iter().find(|it| it.headers.get(wire::REQUEST_ID).is_some_and(|id| id == request_id));
        job.cloned().with_context(|| format!("the farm received no job as {request_id}"))
    }

    /// Every job so far.
    #[must_use]
    pub fn received_in_all(&self) -> usize {
        lock(&self.state.received).len()
    }

    /// Requests without the right token or without a valid job.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.state.turned_away.load(Ordering::SeqCst)
    }
}

/// The first bytes of every long file: a pattern whose period is prime, so that a piece lost or
/// doubled shows.
pub fn long_file(bytes: u64) -> impl Iterator<Item = Bytes> + Send {
    let mut left = bytes;
    let mut start = 0_u64;
    // Cut out of one buffer, so that a long file costs no memory.
    let pattern: Bytes =
        (0..PIECE + PERIOD).map(|index| pattern_byte(index as u64)).collect::<Vec<_>>().into();
    std::iter::from_fn(move || {
        let length = usize::try_from(left.min(PIECE as u64)).ok().filter(|length| *length > 0)?;
        let offset = usize::try_from(start % PERIOD as u64).ok()?;
        left -= length as u64;
        start += length as u64;
        Some(pattern.slice(offset..offset + length))
    })
}

/// The byte of a long file at a place.
#[must_use]
pub fn pattern_byte(place: u64) -> u8 {
    u8::try_from(place % PERIOD as u64).unwrap_or_default()
}

const PERIOD: usize = 251;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, BreakOff> {
    let (head, body) = request.into_parts();
    let expected = format!("Bearer {}", state.token);
    let authorised = head.headers.get(header::AUTHORIZATION).is_some_and(|value| value == &expected);
    let below = head.uri.path().strip_prefix(wire::JOBS_PATH).and_then(|rest| rest.strip_prefix('/'));
    if let Some(id) = below.filter(|_| authorised && head.method == Method::DELETE) {
        state.cancelled.send_if_modified(|cancelled| cancelled.insert(id.to_owned()));
        return Response::builder().status(204).body(full("")).map_err(|_| BreakOff);
    }
    if !authorised || head.method != Method::POST || head.uri.path() != wire::JOBS_PATH {
        state.turned_away.fetch_add(1, Ordering::SeqCst);
        return Ok(refusal(&Refusal::Unauthorized));
    }
    let body = body.collect().await.map_err(|_| BreakOff)?.to_bytes();
    let Ok(job) = serde_json::from_slice::<RenderJob>(&body) else {
        state.turned_away.fetch_add(1, Ordering::SeqCst);
        return Ok(refusal(&Refusal::InvalidJob));
    };
    let behaviour = lock(&state.behaviours).get(job.account.as_str()).cloned().unwrap_or(Behaviour::File);
    let content_type = job.output.format().content_type();
    let id = head.headers.get(wire::JOB_ID).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    lock(&state.received).push(Received { headers: head.headers, job });
    if let Behaviour::UntilCancelled { page_ran } = behaviour {
        let mut cancelled = state.cancelled.subscribe();
        cancelled.wait_for(|cancelled| cancelled.contains(&id)).await.map_err(|_| BreakOff)?;
        return Ok(refusal(&Refusal::Cancelled { page_ran }));
    }
    behave(behaviour, content_type).await
}

async fn behave(behaviour: Behaviour, content_type: &str) -> Result<Response<Body>, BreakOff> {
    let file = |length: Option<u64>, body: Body| {
        let mut response = Response::builder().header(header::CONTENT_TYPE, content_type);
        if let Some(length) = length {
            response = response.header(header::CONTENT_LENGTH, length);
        }
        response.body(body).map_err(|_| BreakOff)
    };
    let pieces = |bytes| stream::iter(long_file(bytes).map(Ok));
    match behaviour {
        Behaviour::File => file(Some(FILE.len() as u64), full(FILE)),
        Behaviour::LongFile(bytes) => file(Some(bytes), streamed(pieces(bytes))),
        Behaviour::Refuse(reason) => Ok(refusal(&reason)),
        Behaviour::Answer(status, content_type, body) => {
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
            response.body(full(body)).map_err(|_| BreakOff)
        }
        Behaviour::BreakOff { promised, sent } => {
            file(promised, streamed(pieces(sent).chain(stream::once(break_off_soon()))))
        }
        Behaviour::HangUp => Err(BreakOff),
        Behaviour::Stall | Behaviour::UntilCancelled { .. } => std::future::pending().await,
        Behaviour::StallAfter(bytes) => {
            file(Some(bytes * 2), streamed(pieces(bytes).chain(stream::pending())))
        }
        Behaviour::Slow(time) => {
            tokio::time::sleep(time).await;
            file(Some(FILE.len() as u64), full(FILE))
        }
    }
}

fn refusal(reason: &Refusal) -> Response<Body> {
    let body = serde_json::to_vec(reason).unwrap_or_default();
    let mut response = Response::new(full(body));
    // A farm tells its edge about a bad token by the status of its own protocol.
    let status = if *reason == Refusal::Unauthorized { 401 } else { reason.status() };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(account: &str) -> Value {
        json!({
            "account": account,
            "source": { "html": "x" },
            "viewport": { "width": 1280, "height": 720, "device_scale_factor": 1 },
            "wait_until": "load",
            "wait_for_timeout": 0,
            "output": { "pdf": { "paper": "A4", "print_background": false, "scale": 1 } },
        })
    }

    async fn post(farm: &StandInFarm, token: &str, job: &Value) -> reqwest::Response {
        let request = reqwest::Client::new().post(format!("{}{}", farm.url(), wire::JOBS_PATH));
        request.bearer_auth(token).header(wire::REQUEST_ID, "id-1").json(job).send().await.unwrap()
    }

    #[tokio::test]
    async fn it_remembers_valid_jobs_of_token_holders_only() {
        let farm = StandInFarm::start("token").await.unwrap();
        assert_eq!(post(&farm, "other", &job("a")).await.status(), 401);
        assert_eq!(post(&farm, "token", &json!({})).await.status(), 503);
        assert_eq!((farm.received_in_all(), farm.turned_away()), (0, 2));
        let answer = post(&farm, "token", &job("a")).await;
        assert_eq!(answer.headers()["content-type"], "application/pdf");
        assert_eq!(answer.bytes().await.unwrap(), FILE);
        assert_eq!(farm.received_from("a").len(), 1);
        assert_eq!(farm.received_as("id-1").unwrap().job.account.as_str(), "a");
        farm.received_as("id-2").unwrap_err();
    }

    #[tokio::test]
    async fn it_behaves_as_told_account_by_account() {
        let farm = StandInFarm::start("token").await.unwrap();
        farm.behave("full", Behaviour::Refuse(Refusal::QueueFull { retry_after: 3 }));
        farm.behave("long", Behaviour::LongFile(200_000));
        farm.behave("broken", Behaviour::BreakOff { promised: Some(1_000), sent: 10 });
        let full = post(&farm, "token", &job("full")).await;
        assert_eq!(full.status(), 503);
        assert_eq!(full.json::<Value>().await.unwrap(), json!({"code": "queue_full", "retry_after": 3}));
        let long = post(&farm, "token", &job("long")).await.bytes().await.unwrap();
        assert_eq!(long.len(), 200_000);
        assert!(long.iter().zip(0..).all(|(byte, place)| *byte == pattern_byte(place)));
        assert!(post(&farm, "token", &job("broken")).await.bytes().await.is_err());
        assert_eq!(post(&farm, "token", &job("other")).await.status(), 200);
    }
}
