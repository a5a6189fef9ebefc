//! The requests to a farm: a job, and the question for its load.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use futures::future::{Either, select};
use platen_component::{
    background::Background,
    body::{OutgoingBody, TrailersReader},
    platform,
};
use platen_shared::{
    farm_address::{FarmAddress, account_hash},
    job::{RenderJob, SlotRequest},
    refusal::{RETRY_AFTER_SECONDS, Refusal},
    wire,
};
use spin_sdk::{
    time::sleep,
    wasip3::{
        http::types::{ErrorCode, Fields, Method, Request, RequestOptions, Scheme},
        wit_future,
    },
    wit_bindgen::{FutureReader, StreamReader},
};

use super::{
    load::ANSWER_TIMEOUT,
    response::{self, FarmFile},
};
use crate::{
    api_error::ApiError,
    component::{
        context::RequestContext,
        failure::Failure,
        settings::{Farm, Settings},
    },
    farms::Load,
    trace::Trace,
};

/// Additional time for the response of the farm, whose refusal of a late job is more specific than a
/// timeout of the edge.
const GRACE_PERIOD: Duration = Duration::from_millis(500);
/// A job that is not connected by then was not sent. Lost packets are repeated after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A job with less time is not sent to another farm, because no page renders within it.
const MIN_RENDER_TIME: Duration = Duration::from_millis(100);

/// How often a farm at which a job waits is asked whether it is still there.
const SILENCE_INTERVAL: Duration = Duration::from_secs(2);

/// The result of sending a request.
type Transmission = FutureReader<Result<(), ErrorCode>>;

/// Whether a job may wait for a slot of the farm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queueing {
    Allowed,
    Refused,
}

/// A job that can be sent to any farm.
pub(super) struct JobRequest<'r> {
    settings: &'r Settings,
    job: &'r RenderJob,
    deadline: Instant,
    background: &'r Background,
    pub(super) trace: &'r Trace,
    /// The value of [`wire::ACCOUNT`].
    pub(super) account: String,
}

impl<'r> JobRequest<'r> {
    pub(super) fn new(
        settings: &'r Settings,
        job: &'r RenderJob,
        deadline: Instant,
        context: &'r RequestContext,
    ) -> Self {
        let (background, trace) = (&context.background, &context.trace);
        Self { settings, job, deadline, background, trace, account: account_hash(&job.account) }
    }

    /// A number that differs between jobs.
    pub(super) fn number(&self) -> usize {
        self.trace.job_id.bytes().map(usize::from).sum()
    }

    pub(super) fn is_too_late(&self) -> bool {
        self.time_left() < MIN_RENDER_TIME.min(self.settings.render_timeout / 2)
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Sends the job and waits for the file.
    pub(super) async fn send(&self, farm: &Farm, queueing: Queueing) -> Result<FarmFile, Failure> {
        let body = serde_json::to_vec(self.job).map_err(Failure::internal)?;
        let time_left = self.time_left();
        if time_left.is_zero() {
            return Err(Refusal::NoSlotInTime { retry_after: RETRY_AFTER_SECONDS }.into());
        }
        // The edge does not read the file, so the platform has to detect a stalled transfer. A platform that
        // does not support this option applies its own limit.
        let options = options(CONNECT_TIMEOUT.min(time_left));
        let _ = options.set_between_bytes_timeout(u64::try_from(time_left.as_nanos()).ok());
        let (request, _sent) = self.post(&farm.address, wire::JOBS_PATH, body, queueing, options)?;
        let received = response::receive(request, self.job.options.output.format(), self.deadline, farm);
        let file = platform::timeout(time_left + GRACE_PERIOD, received).await;
        file.unwrap_or_else(|| Err(ApiError::from(Refusal::Deadline).into()))
    }

    /// Waits until a farm keeps a slot for the job, which uses it if it is sent at once. A farm of an earlier version
    /// keeps none; the job waits there after it was sent. Gives up when the farm does not state its load within
    /// `patience`.
    pub(super) async fn wait_for_slot(&self, farm: &Farm, patience: Duration) -> Result<(), Failure> {
        let (slot, silent) = (pin!(self.slot(farm)), pin!(self.until_silent(&farm.address, patience)));
        match platform::timeout(self.time_left() + GRACE_PERIOD, select(slot, silent)).await {
            Some(Either::Left((slot, _))) => slot,
            Some(Either::Right((failure, _))) => Err(failure),
            None => Err(Refusal::NoSlotInTime { retry_after: RETRY_AFTER_SECONDS }.into()),
        }
    }

    async fn slot(&self, farm: &Farm) -> Result<(), Failure> {
        let request = SlotRequest { account: self.job.account.clone() };
        let body = serde_json::to_vec(&request).map_err(Failure::internal)?;
        for _ in 0..2 {
            let options = options(ANSWER_TIMEOUT.min(self.time_left()));
            let (request, _sent) =
                self.post(&farm.address, wire::SLOTS_PATH, body.clone(), Queueing::Allowed, options)?;
            if let Some(answer) = response::slot(request, farm).await {
                return answer;
            }
        }
        Err(closed())
    }

    /// Completes when a farm no longer states its load within `patience`.
    async fn until_silent(&self, farm: &FarmAddress, patience: Duration) -> Failure {
        loop {
            sleep(SILENCE_INTERVAL).await;
            match platform::timeout(patience, self.load(farm)).await {
                Some(Ok(_)) => {}
                Some(Err(failure)) => return failure,
                None => return Failure::new(ApiError::FarmUnreachable, "it did not answer".to_owned()),
            }
        }
    }

    /// Asks a farm for its load. The question is repeated once, because the farm may have closed an idle connection
    /// just when it was sent.
    pub(super) async fn load(&self, farm: &FarmAddress) -> Result<Load, Failure> {
        for _ in 0..2 {
            let headers = fields(&self.common_headers())?;
            let (_trailers, no_trailers) = wit_future::new(|| Ok(None));
            let options = options(ANSWER_TIMEOUT);
            let path = format!("{}{}", farm.path, wire::LOAD_PATH);
            let (request, _sent) = request_to(farm, &Method::Get, &path, headers, None, no_trailers, options);
            if let Some(answer) = response::load(request).await {
                return answer;
            }
        }
        Err(closed())
    }

    /// A POST request with the headers of the job.
    fn post(
        &self,
        farm: &FarmAddress,
        path: &str,
        body: Vec<u8>,
        queueing: Queueing,
        options: RequestOptions,
    ) -> Result<(Request, Transmission), Failure> {
        let headers = self.job_headers(body.len(), queueing)?;
        let OutgoingBody { contents, trailers, transfer } = OutgoingBody::new(body);
        self.background.run(async {
            _ = transfer.await;
        });
        let path = format!("{}{path}", farm.path);
        Ok(request_to(farm, &Method::Post, &path, headers, Some(contents), trailers, options))
    }

    fn common_headers(&self) -> Vec<(String, Vec<u8>)> {
        vec![
            ("authorization".to_owned(), format!("Bearer {}", self.settings.farm_token).into_bytes()),
            (wire::REQUEST_ID.to_owned(), self.trace.request_id.clone().into_bytes()),
            (wire::ACCOUNT.to_owned(), self.account.clone().into_bytes()),
            (wire::TRACEPARENT.to_owned(), self.trace.traceparent.clone()),
            (wire::JOB_TRACEPARENT.to_owned(), self.trace.traceparent.clone()),
        ]
    }

    fn job_headers(&self, length: usize, queueing: Queueing) -> Result<Fields, Failure> {
        let mut entries = self.common_headers();
        entries.extend([
            ("content-type".to_owned(), b"application/json".to_vec()),
            ("content-length".to_owned(), length.to_string().into_bytes()),
            (wire::JOB_ID.to_owned(), self.trace.job_id.clone().into_bytes()),
            (wire::DEADLINE_MS.to_owned(), self.time_left().as_millis().to_string().into_bytes()),
        ]);
        if queueing == Queueing::Refused {
            entries.push((wire::NO_QUEUE.to_owned(), b"1".to_vec()));
        }
        entries.extend(self.trace.tracestate.clone().map(|state| (wire::TRACESTATE.to_owned(), state)));
        fields(&entries)
    }
}

fn closed() -> Failure {
    Failure::new(ApiError::FarmUnreachable, "it closed the connection".to_owned())
}

fn fields(entries: &[(String, Vec<u8>)]) -> Result<Fields, Failure> {
    Fields::from_list(entries).map_err(|error| {
        Failure::new(ApiError::Internal, format!("cannot build the request to the farm: {error:?}"))
    })
}

/// A platform that does not support this option applies its own limit.
fn options(connect_timeout: Duration) -> RequestOptions {
    let options = RequestOptions::new();
    let _ = options.set_connect_timeout(u64::try_from(connect_timeout.as_nanos()).ok());
    options
}

fn request_to(
    farm: &FarmAddress,
    method: &Method,
    path: &str,
    headers: Fields,
    body: Option<StreamReader<u8>>,
    trailers: TrailersReader,
    options: RequestOptions,
) -> (Request, Transmission) {
    let (request, transmitted) = Request::new(headers, body, trailers, Some(options));
    let scheme = if farm.https { Scheme::Https } else { Scheme::Http };
    let set = request
        .set_method(method)
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(&farm.authority)))
        .and_then(|()| request.set_path_with_query(Some(path)));
    debug_assert!(set.is_ok(), "the parts of farm_url were checked when it was parsed");
    (request, transmitted)
}
