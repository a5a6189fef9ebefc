//! The farm: its settings, the request of a job, and its responses: a small file, the stream of a large one, which the edge
//! does not read, or a refusal.
//!
//! Invariant: a job is sent once. Every error says whether a page may have run, because that decides whether the attempt counts.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use platen_shared::{
    farm_address::account_hash, job::RenderJob, limits, page_report::PageReport, refusal::Refusal, wire,
};
use platen_spin::{
    body::{self, Headers, TrailersReader},
    farm::{Farm, InvalidFarm},
    platform::{self, Unreadable, variable},
};
use spin_sdk::{
    wasip3::{
        http::{
            client,
            types::{ErrorCode, Fields, Request, RequestOptions, Response},
        },
        wit_future,
    },
    wit_bindgen::StreamReader,
};

use super::{
    ahead::{self, InvalidClaimAhead},
    context::RequestContext,
    failure::{Failure, FarmTimes},
};
use crate::api_error::ApiError;

/// Additional time for the response of the farm, whose refusal of a late job is more specific than a
/// timeout of the edge.
const GRACE_PERIOD: Duration = Duration::from_millis(500);
/// A job that is not connected by then was not sent. Lost packets are repeated after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A file up to this size is read before the response begins, so that both leave in one packet where Nagle's
/// algorithm would hold the second one back. In a larger file, full packets follow the head.
const MAX_WHOLE_BYTES: usize = 256 * 1024;
/// Maximum number of bytes that are read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The settings of the operator, read from Spin variables once per instance.
pub(super) struct Settings {
    farm: Farm,
    pub(super) render_timeout: Duration,
    /// How long attempts may be used that were claimed ahead, in seconds; 0 claims each one by itself.
    pub(super) claim_ahead: u64,
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    Farm(#[from] InvalidFarm),
    #[error(
        "the Spin variable deadline_ms must be a whole number of milliseconds from 1 to {}",
        limits::RENDER_TIMEOUT_MS
    )]
    Deadline,
    #[error(transparent)]
    ClaimAhead(#[from] InvalidClaimAhead),
}

impl Settings {
    pub(super) async fn get() -> Result<&'static Self, SettingsError> {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        platform::once(&SETTINGS, Self::read()).await
    }

    async fn read() -> Result<Self, SettingsError> {
        let farm = Farm::read().await?;
        let milliseconds = variable("deadline_ms").await?.parse().ok();
        let milliseconds = milliseconds
            .filter(|ms| (1..=limits::RENDER_TIMEOUT_MS).contains(ms))
            .ok_or(SettingsError::Deadline)?;
        let claim_ahead = ahead::seconds(&variable("claim_ahead").await?)?;
        Ok(Self { farm, render_timeout: Duration::from_millis(milliseconds), claim_ahead })
    }
}

/// Sends a job and waits for the file: for all of a small one, or for the head of the response. `None` if the farm needs the
/// contents of the template's files, and the job has not begun.
pub(super) async fn render(
    settings: &Settings,
    job: &RenderJob,
    deadline: Instant,
    context: &mut RequestContext,
) -> Result<Option<FarmFile>, Failure> {
    let started = Instant::now();
    let file = send(settings, job, deadline, context).await;
    context.log.farm_elapsed = Some(started.elapsed());
    if let Some(attempt) = &mut context.attempt
        && let Ok(Some(FarmFile { times, .. })) | Err(Failure { times, .. }) = &file
    {
        (attempt.queued_ms, attempt.render_ms) = (times.queued_ms, times.render_ms);
    }
    file
}

async fn send(
    settings: &Settings,
    job: &RenderJob,
    deadline: Instant,
    context: &RequestContext,
) -> Result<Option<FarmFile>, Failure> {
    let body = serde_json::to_vec(job).map_err(Failure::internal)?;
    let time_left = deadline.saturating_duration_since(Instant::now());
    if time_left.is_zero() {
        return Err(Refusal::NoSlotInTime.into());
    }
    // A platform that does not support an option applies its own limit.
    let options = RequestOptions::new();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).ok();
    let _ = options.set_connect_timeout(nanoseconds(CONNECT_TIMEOUT.min(time_left)));
    // The edge does not read the file, so the platform has to detect a stalled transfer.
    let _ = options.set_between_bytes_timeout(nanoseconds(time_left));
    let headers = headers(job, time_left, context);
    let (request, transfer) =
        settings.farm.post(wire::JOBS_PATH, headers, body, options).map_err(|error| {
            Failure::new(ApiError::Internal, format!("cannot build the request to the farm: {error:?}"))
        })?;
    context.background.run(async {
        _ = transfer.await;
    });
    let received = receive(request, job, deadline);
    let file = platform::timeout(time_left + GRACE_PERIOD, received).await;
    file.unwrap_or_else(|| Err(ApiError::from(Refusal::Deadline).into()))
}

fn headers(job: &RenderJob, time_left: Duration, context: &RequestContext) -> Headers {
    let trace = &context.trace;
    let mut entries = vec![
        (wire::REQUEST_ID.to_owned(), trace.request_id.clone().into_bytes()),
        (wire::ACCOUNT.to_owned(), account_hash(&job.account).into_bytes()),
        (wire::DEADLINE_MS.to_owned(), time_left.as_millis().to_string().into_bytes()),
        (wire::TRACEPARENT.to_owned(), trace.traceparent.clone()),
        (wire::JOB_TRACEPARENT.to_owned(), trace.traceparent.clone()),
    ];
    entries.extend(trace.tracestate.clone().map(|state| (wire::TRACESTATE.to_owned(), state)));
    entries
}

/// The body of a successful response.
pub(super) enum FileBody {
    /// A small file.
    Whole(Vec<u8>),
    /// A file that is larger than [`MAX_WHOLE_BYTES`], or of unknown length.
    Stream {
        /// The length in bytes, if the farm declares it.
        length: Option<u64>,
        contents: StreamReader<u8>,
        trailers: TrailersReader,
    },
}

/// A successful response.
pub(super) struct FarmFile {
    pub(super) body: FileBody,
    pub(super) page: PageReport,
    pub(super) times: FarmTimes,
}

impl FileBody {
    /// The length in bytes, if it is known.
    pub(super) fn length(&self) -> Option<i64> {
        match self {
            Self::Whole(bytes) => i64::try_from(bytes.len()).ok(),
            Self::Stream { length, .. } => i64::try_from((*length)?).ok(),
        }
    }
}

async fn receive(request: Request, job: &RenderJob, deadline: Instant) -> Result<Option<FarmFile>, Failure> {
    let response = client::send(request).await.map_err(|code| no_response(&code))?;
    let (status, headers) = (response.get_status_code(), response.get_headers());
    if headers.get(wire::FARM_ID).is_empty() {
        return Err(not_a_farm(status));
    }
    if status == wire::CONTENTS_NEEDED {
        return Ok(None);
    }
    if status != 200 {
        return Err(refused(response, job).await);
    }
    let content_type = headers.get("content-type").into_iter().next().unwrap_or_default();
    if content_type != job.options.output.format().content_type().as_bytes() {
        let cause = format!("farm answered 200 with {:?}", String::from_utf8_lossy(&content_type));
        return Err(Failure::new(Refusal::Broken, cause));
    }
    let (length, times) = (number(&headers, "content-length"), times(&headers));
    let page = PageReport::of_headers(|name| text(&headers, name));
    let file = |body| Ok(Some(FarmFile { body, page, times }));
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut contents, trailers) = Response::consume_body(response, done_reader);
    match length.and_then(|length| usize::try_from(length).ok()) {
        Some(expected) if expected <= MAX_WHOLE_BYTES => {
            let bytes = body::read_up_to(&mut contents, expected + 1, expected).await;
            if bytes.len() == expected {
                return file(FileBody::Whole(bytes));
            }
            // The platform ends a transfer that stalls until the deadline.
            let refusal = if Instant::now() < deadline { Refusal::Broken } else { Refusal::Deadline };
            let cause = format!("the farm sent {} of {expected} bytes", bytes.len());
            Err(Failure { times, ..Failure::new(refusal, cause) })
        }
        _ => file(FileBody::Stream { length, contents, trailers }),
    }
}

/// The value of a header that is a text.
fn text(headers: &Fields, name: &str) -> Option<String> {
    String::from_utf8(headers.get(name).into_iter().next()?).ok()
}

/// The value of a header that is a number.
fn number(headers: &Fields, name: &str) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

fn times(headers: &Fields) -> FarmTimes {
    // Larger than any time of a job, and small enough for a column.
    let time = |name| number(headers, name).filter(|time| *time <= u32::MAX.into());
    FarmTimes { queued_ms: time(wire::QUEUED_MS), render_ms: time(wire::RENDER_MS) }
}

/// The failure of a request without a response. It is refunded if the farm was not reached.
fn no_response(code: &ErrorCode) -> Failure {
    let error = match code {
        ErrorCode::InternalError(Some(reason)) if reason == wire::DISCONNECTED_UNSENT => {
            Refusal::Cancelled { page_ran: false }.into()
        }
        // Whether a page ran is not known, so the attempt counts.
        ErrorCode::InternalError(Some(reason)) if reason == wire::DISCONNECTED => {
            Refusal::Cancelled { page_ran: true }.into()
        }
        ErrorCode::DnsTimeout
        | ErrorCode::DnsError(_)
        | ErrorCode::DestinationNotFound
        | ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpProhibited
        | ErrorCode::DestinationIpUnroutable
        | ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionLimitReached
        | ErrorCode::TlsProtocolError
        | ErrorCode::TlsCertificateError
        | ErrorCode::TlsAlertReceived(_)
        | ErrorCode::HttpRequestDenied
        | ErrorCode::HttpRequestUriInvalid
        | ErrorCode::ConfigurationError => ApiError::FarmUnreachable,
        _ => Refusal::Broken.into(),
    };
    let cause = match code {
        ErrorCode::HttpRequestDenied => {
            "HttpRequestDenied: allowed_outbound_hosts in spin.toml does not allow the farm".to_owned()
        }
        code => format!("{code:?}"),
    };
    Failure::new(error, cause)
}

/// The failure of a response without the header of a farm: that of a proxy, or of a server that is no farm.
fn not_a_farm(status: u16) -> Failure {
    // A proxy that lost the farm after it had sent the job, whose page may have run.
    let error = if matches!(status, 502 | 504) { Refusal::Broken.into() } else { ApiError::FarmUnreachable };
    Failure::new(error, format!("{status} without the header {} of a farm", wire::FARM_ID))
}

/// The failure of a response of the farm other than 200.
async fn refused(response: Response, job: &RenderJob) -> Failure {
    let status = response.get_status_code();
    let times = times(&response.get_headers());
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut stream, _trailers) = Response::consume_body(response, done_reader);
    let body = body::read_up_to(&mut stream, 1024, MAX_REFUSAL_BYTES).await;
    if let Ok(refusal) = serde_json::from_slice::<Refusal>(&body) {
        let cause = format!("the farm answered {status}: {}", refusal.code());
        return Failure { times, ..Failure::new(ApiError::of_job(refusal, job), cause) };
    }
    Failure::new(Refusal::Broken, format!("the farm answered {status} without a refusal"))
}
