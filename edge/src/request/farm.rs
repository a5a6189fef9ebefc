//! Sends a job to the farm.
//!
//! Invariant: a job is sent once. Every error says whether a page may have run, because that decides whether the attempt
//! counts.

mod response;

use std::time::{Duration, Instant};

use platen_shared::{
    farm_address::account_hash,
    job::RenderJob,
    refusal::{RETRY_AFTER_SECONDS, Refusal},
    wire,
};
use platen_spin::{body::OutgoingBody, platform};
use spin_sdk::wasip3::http::types::{Fields, Method, Request, RequestOptions, Scheme};

use super::{context::RequestContext, failure::Failure, settings::Settings};
use crate::api_error::ApiError;
pub(super) use response::{FarmFile, FileBody};

/// Additional time for the response of the farm, whose refusal of a late job is more specific than a
/// timeout of the edge.
const GRACE_PERIOD: Duration = Duration::from_millis(500);
/// A job that is not connected by then was not sent. Lost packets are repeated after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a job and waits for the file: for all of a small one, or for the head of the response.
pub(super) async fn render(
    settings: &Settings,
    job: &RenderJob,
    deadline: Instant,
    context: &mut RequestContext,
) -> Result<FarmFile, Failure> {
    let started = Instant::now();
    let file = send(settings, job, deadline, context).await;
    context.log.farm_elapsed = Some(started.elapsed());
    if let Some(attempt) = &mut context.attempt {
        let (Ok(FarmFile { times, .. }) | Err(Failure { times, .. })) = &file;
        (attempt.queued_ms, attempt.render_ms) = (times.queued_ms, times.render_ms);
    }
    file
}

async fn send(
    settings: &Settings,
    job: &RenderJob,
    deadline: Instant,
    context: &RequestContext,
) -> Result<FarmFile, Failure> {
    let body = serde_json::to_vec(job).map_err(Failure::internal)?;
    let time_left = deadline.saturating_duration_since(Instant::now());
    if time_left.is_zero() {
        return Err(Refusal::NoSlotInTime { retry_after: RETRY_AFTER_SECONDS }.into());
    }
    let headers = headers(settings, job, body.len(), time_left, context)?;
    let OutgoingBody { contents, trailers, transfer } = OutgoingBody::new(body);
    context.background.run(async {
        _ = transfer.await;
    });
    // A platform that does not support an option applies its own limit.
    let options = RequestOptions::new();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).ok();
    let _ = options.set_connect_timeout(nanoseconds(CONNECT_TIMEOUT.min(time_left)));
    // The edge does not read the file, so the platform has to detect a stalled transfer.
    let _ = options.set_between_bytes_timeout(nanoseconds(time_left));
    let (request, _sent) = Request::new(headers, Some(contents), trailers, Some(options));
    let farm = &settings.farm;
    let scheme = if farm.https { Scheme::Https } else { Scheme::Http };
    let path = format!("{}{}", farm.path, wire::JOBS_PATH);
    let set = request
        .set_method(&Method::Post)
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(&farm.authority)))
        .and_then(|()| request.set_path_with_query(Some(&path)));
    debug_assert!(set.is_ok(), "the parts of farm_url were checked when it was parsed");
    let received = response::receive(request, job.options.output.format(), deadline);
    let file = platform::timeout(time_left + GRACE_PERIOD, received).await;
    file.unwrap_or_else(|| Err(ApiError::from(Refusal::Deadline).into()))
}

fn headers(
    settings: &Settings,
    job: &RenderJob,
    length: usize,
    time_left: Duration,
    context: &RequestContext,
) -> Result<Fields, Failure> {
    let trace = &context.trace;
    let mut entries = vec![
        ("authorization".to_owned(), format!("Bearer {}", settings.farm_token).into_bytes()),
        ("content-type".to_owned(), b"application/json".to_vec()),
        ("content-length".to_owned(), length.to_string().into_bytes()),
        (wire::REQUEST_ID.to_owned(), trace.request_id.clone().into_bytes()),
        (wire::ACCOUNT.to_owned(), account_hash(&job.account).into_bytes()),
        (wire::DEADLINE_MS.to_owned(), time_left.as_millis().to_string().into_bytes()),
        (wire::TRACEPARENT.to_owned(), trace.traceparent.clone()),
        (wire::JOB_TRACEPARENT.to_owned(), trace.traceparent.clone()),
    ];
    entries.extend(trace.tracestate.clone().map(|state| (wire::TRACESTATE.to_owned(), state)));
    Fields::from_list(&entries).map_err(|error| {
        Failure::new(ApiError::Internal, format!("cannot build the request to the farm: {error:?}"))
    })
}
