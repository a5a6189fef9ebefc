//! A stand-in farm: it renders nothing, records the jobs that it receives, and answers as configured.
//!
//! Invariant: a request without the right token or a valid job is not recorded as received. The answer depends on
//! the account, so cases can share one stand-in.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_shared::{job::RenderJob, refusal::Refusal, wire};

use crate::{
    latch::LatchWaiter,
    long_file::long_file,
    loopback::{Body, BreakOff, Loopback, break_off, full, streamed},
    wait,
};

/// The file that it answers with by default.
pub const FILE: &[u8] = b"This is what the stand-in farm calls a file.";
/// Its name.
const ID: &str = "stand-in";
/// For how long each job waited and had its slot, as it says.
const TIMES_MS: (u64, u64) = (1_007, 2_021);

/// How it answers the jobs of an account.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// [`FILE`].
    File,
    /// A file of this many bytes, see [`long_file`](crate::long_file).
    LongFile(u64),
    /// A refusal in the form of a farm.
    Refuse(Refusal),
    /// A refusal in the form of a farm once the latch is open.
    RefuseHeld(LatchWaiter, Refusal),
    /// A refusal for lack of a slot, with the time in milliseconds for which it is likely to last.
    Busy(u64),
    /// This status, content type and body, without the header of a farm.
    Answer(u16, &'static str, &'static str),
    /// The same with that header.
    FarmAnswer(u16, &'static str, &'static str),
    /// Part of a file, then the end of the connection.
    BreakOff {
        /// The `content-length`; `None` is a chunked transfer.
        promised: Option<u64>,
        /// Bytes that are sent.
        sent: u64,
        /// Until when the connection stays open.
        until: LatchWaiter,
    },
    /// The end of the connection without an answer.
    HangUp,
    /// No answer.
    Stall,
    /// This many bytes of a file of twice the size, then nothing on an open connection.
    StallAfter(u64),
    /// [`FILE`] once the latch is open.
    Held(LatchWaiter),
}

/// A received job.
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
    rejected: AtomicU64,
}

/// A running stand-in.
#[derive(Debug)]
pub struct StandInFarm {
    server: Loopback,
    state: Arc<State>,
}

impl StandInFarm {
    /// Starts a farm that accepts jobs with this token.
    pub async fn start(token: &str) -> Result<Self> {
        Self::start_at(token, ([127, 0, 0, 1], 0).into()).await
    }

    /// Starts a farm on this address.
    pub async fn start_at(token: &str, address: SocketAddr) -> Result<Self> {
        let state = Arc::new(State { token: token.to_owned(), ..State::default() });
        let shared = Arc::clone(&state);
        let server = Loopback::start_at(address, move |request| answer(Arc::clone(&shared), request)).await?;
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

    /// Answers the jobs of an account like this from now on.
    pub fn behave(&self, account: &str, behaviour: Behaviour) {
        lock(&self.state.behaviours).insert(account.to_owned(), behaviour);
    }

    /// The jobs of an account, oldest first.
    #[must_use]
    pub fn received_from(&self, account: &str) -> Vec<Received> {
        lock(&self.state.received).iter().filter(|it| it.job.account.as_str() == account).cloned().collect()
    }

    /// Waits until the account's first job is received.
    pub async fn until_received_from(&self, account: &str) -> Result<()> {
        wait::until("the job reaches the farm", || !self.received_from(account).is_empty()).await
    }

    /// The job with a request id.
    pub fn received_as(&self, request_id: &str) -> Result<Received> {
        let received = lock(&self.state.received);
        let job =
            received.iter().find(|it| it.headers.get(wire::REQUEST_ID).is_some_and(|id| id == request_id));
        job.cloned().with_context(|| format!("the farm received no job as {request_id}"))
    }

    /// The number of jobs so far.
    #[must_use]
    pub fn received_in_all(&self) -> usize {
        lock(&self.state.received).len()
    }

    /// The number of requests without the right token or a valid job.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.state.rejected.load(Ordering::SeqCst)
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, BreakOff> {
    let (head, body) = request.into_parts();
    let expected = format!("Bearer {}", state.token);
    let authorised = head.headers.get(header::AUTHORIZATION).is_some_and(|value| value == &expected);
    if head.method == Method::GET && head.uri.path() == "/readyz" {
        return Response::builder().header(wire::FARM_ID, ID).body(full("ready\n")).map_err(|_| BreakOff);
    }
    if !authorised || head.method != Method::POST || head.uri.path() != wire::JOBS_PATH {
        state.rejected.fetch_add(1, Ordering::SeqCst);
        return Ok(refusal(&Refusal::Unauthorized));
    }
    let body = body.collect().await.map_err(|_| BreakOff)?.to_bytes();
    let Ok(job) = serde_json::from_slice::<RenderJob>(&body) else {
        state.rejected.fetch_add(1, Ordering::SeqCst);
        return Ok(refusal(&Refusal::InvalidJob));
    };
    let behaviour = lock(&state.behaviours).get(job.account.as_str()).cloned().unwrap_or(Behaviour::File);
    let content_type = job.options.output.format().content_type();
    lock(&state.received).push(Received { headers: head.headers, job });
    behave(behaviour, content_type).await
}

async fn behave(behaviour: Behaviour, content_type: &str) -> Result<Response<Body>, BreakOff> {
    let file = |length: Option<u64>, body: Body| {
        let mut response =
            Response::builder().header(header::CONTENT_TYPE, content_type).header(wire::FARM_ID, ID);
        response = response.header(wire::QUEUED_MS, TIMES_MS.0).header(wire::RENDER_MS, TIMES_MS.1);
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
        Behaviour::RefuseHeld(latch, reason) => {
            latch.opened().await;
            Ok(refusal(&reason))
        }
        Behaviour::Busy(milliseconds) => {
            let mut response = refusal(&Refusal::QueueFull { retry_after: 1 });
            response.headers_mut().insert(wire::NOT_BEFORE_MS, milliseconds.into());
            Ok(response)
        }
        Behaviour::Answer(status, content_type, body) => {
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
            response.body(full(body)).map_err(|_| BreakOff)
        }
        Behaviour::FarmAnswer(status, content_type, body) => {
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
            response.header(wire::FARM_ID, ID).body(full(body)).map_err(|_| BreakOff)
        }
        Behaviour::BreakOff { promised, sent, until } => {
            let end = async {
                until.opened().await;
                break_off().await
            };
            file(promised, streamed(pieces(sent).chain(stream::once(end))))
        }
        Behaviour::HangUp => Err(BreakOff),
        Behaviour::Stall => std::future::pending().await,
        Behaviour::StallAfter(bytes) => {
            file(Some(bytes * 2), streamed(pieces(bytes).chain(stream::pending())))
        }
        Behaviour::Held(latch) => {
            latch.opened().await;
            file(Some(FILE.len() as u64), full(FILE))
        }
    }
}

/// The response of a farm that refuses a job.
pub(crate) fn refusal(reason: &Refusal) -> Response<Body> {
    let body = serde_json::to_vec(reason).unwrap_or_default();
    let mut response = Response::new(full(body));
    // A bad token has a status of the protocol between edge and farm.
    let status = if *reason == Refusal::Unauthorized { 401 } else { reason.class().status() };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response.headers_mut().insert(wire::FARM_ID, header::HeaderValue::from_static(ID));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::long_file::pattern_byte;

    fn job(account: &str) -> Value {
        json!({
            "account": account,
            "source": { "html": "x" },
            "options": { "output": { "pdf": { "sheet": { "width": 794, "height": 1123 } } } },
        })
    }

    async fn post(farm: &StandInFarm, token: &str, job: &Value) -> reqwest::Response {
        let request = reqwest::Client::new().post(format!("{}{}", farm.url(), wire::JOBS_PATH));
        request.bearer_auth(token).header(wire::REQUEST_ID, "id-1").json(job).send().await.unwrap()
    }

    #[tokio::test]
    async fn valid_jobs_with_the_token_are_recorded() {
        let farm = StandInFarm::start("token").await.unwrap();
        assert_eq!(post(&farm, "other", &job("a")).await.status(), 401);
        assert_eq!(post(&farm, "token", &json!({})).await.status(), 503);
        assert_eq!((farm.received_in_all(), farm.rejected()), (0, 2));
        let answer = post(&farm, "token", &job("a")).await;
        assert_eq!(answer.headers()["content-type"], "application/pdf");
        assert_eq!(answer.bytes().await.unwrap(), FILE);
        assert_eq!(farm.received_from("a").len(), 1);
        assert_eq!(farm.received_as("id-1").unwrap().job.account.as_str(), "a");
        farm.received_as("id-2").unwrap_err();
    }

    #[tokio::test]
    async fn each_account_has_its_behaviour() {
        let farm = StandInFarm::start("token").await.unwrap();
        farm.behave("full", Behaviour::Refuse(Refusal::QueueFull { retry_after: 3 }));
        farm.behave("long", Behaviour::LongFile(200_000));
        let broken = Behaviour::BreakOff { promised: Some(1_000), sent: 10, until: LatchWaiter::ready() };
        farm.behave("broken", broken);
        let full = post(&farm, "token", &job("full")).await;
        assert_eq!(full.status(), 503);
        assert_eq!(full.json::<Value>().await.unwrap(), json!({"code": "queue_full", "retry_after": 3}));
        let long = post(&farm, "token", &job("long")).await.bytes().await.unwrap();
        assert_eq!(long.len(), 200_000);
        assert!(long.iter().zip(0..).all(|(byte, offset)| *byte == pattern_byte(offset)));
        assert!(post(&farm, "token", &job("broken")).await.bytes().await.is_err());
        assert_eq!(post(&farm, "token", &job("other")).await.status(), 200);
    }
}
