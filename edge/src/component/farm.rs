//! Sends one job to the farm, and returns a small file, or the stream of a large one, which the edge does not read.
//!
//! Invariant: every error says whether a page may have run, because that decides whether the attempt
//! counts. The deadline holds even if the farm does not reply; dropping the request then closes it, by
//! which the farm notices.

use std::time::{Duration, Instant};

use platen_component::{
    body::{self, OutgoingBody, TrailersReader},
    platform,
};
use platen_shared::{format::OutputFormat, job::RenderJob, refusal::Refusal, wire};
use spin_sdk::{
    wasip3::{
        http::{
            client,
            types::{ErrorCode, Fields, Method, Request, RequestOptions, Response, Scheme},
        },
        wit_future,
    },
    wit_bindgen::{FutureReader, StreamReader},
};

use super::{
    context::RequestContext,
    failure::Failure,
    settings::{FarmAddress, Settings},
};
use crate::{api_error::ApiError, trace::Trace};

/// Additional time for the response of the farm, whose refusal of a late job is more specific than a
/// timeout of the edge.
const GRACE_PERIOD: Duration = Duration::from_millis(500);
/// A file up to this size is read before the response begins, so that both leave in one packet where Nagle's
/// algorithm would hold the second one back. In a larger file, full packets follow the head.
const MAX_WHOLE_BYTES: usize = 256 * 1024;
/// Maximum number of bytes that are read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The body of a successful response.
pub(super) enum FileBody {
    /// A small file.
    Whole(Vec<u8>),
    /// A file that is larger than [`MAX_WHOLE_BYTES`], or of unknown length.
    Stream {
        /// In bytes, if the farm declares it.
        length: Option<u64>,
        contents: StreamReader<u8>,
        trailers: TrailersReader,
    },
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

/// Sends a job and waits for the file: for all of a small one, or for the head of the response.
pub(super) async fn render(
    settings: &Settings,
    job: &RenderJob,
    deadline: Instant,
    context: &mut RequestContext,
) -> Result<FileBody, Failure> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let body = serde_json::to_vec(job).map_err(Failure::internal)?;
    let headers = headers(settings, body.len(), remaining, &context.trace)?;
    let started = Instant::now();
    let OutgoingBody { contents, trailers, transfer } = OutgoingBody::new(body);
    context.background.run(async {
        _ = transfer.await;
    });
    let (request, _sent) = request(&settings.farm, headers, contents, trailers, remaining);
    let file =
        platform::timeout(remaining + GRACE_PERIOD, receive(request, job.output.format(), deadline)).await;
    context.log.farm_elapsed = Some(started.elapsed());
    file.unwrap_or_else(|| Err(ApiError::from(Refusal::Deadline).into()))
}

async fn receive(request: Request, format: OutputFormat, deadline: Instant) -> Result<FileBody, Failure> {
    let response = client::send(request).await.map_err(|code| no_response(&code))?;
    if response.get_status_code() != 200 {
        return Err(refused(response).await);
    }
    let headers = response.get_headers();
    // A proxy between edge and farm may respond with 200 and an HTML page.
    let content_type = headers.get("content-type").into_iter().next().unwrap_or_default();
    if content_type != format.content_type().as_bytes() {
        let cause = format!("farm answered 200 with {:?}", String::from_utf8_lossy(&content_type));
        return Err(Failure::new(Refusal::Broken, cause));
    }
    let length = headers.get("content-length").into_iter().next();
    let length = length.and_then(|length| std::str::from_utf8(&length).ok()?.parse().ok());
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut contents, trailers) = Response::consume_body(response, done_reader);
    match length.and_then(|length| usize::try_from(length).ok()) {
        Some(expected) if expected <= MAX_WHOLE_BYTES => {
            let bytes = body::read_up_to(&mut contents, expected + 1, expected).await;
            if bytes.len() == expected {
                return Ok(FileBody::Whole(bytes));
            }
            // The platform ends a transfer that stalls until the deadline.
            let refusal = if Instant::now() < deadline { Refusal::Broken } else { Refusal::Deadline };
            Err(Failure::new(refusal, format!("the farm sent {} of {expected} bytes", bytes.len())))
        }
        _ => Ok(FileBody::Stream { length, contents, trailers }),
    }
}

fn headers(
    settings: &Settings,
    length: usize,
    remaining: Duration,
    trace: &Trace,
) -> Result<Fields, Failure> {
    let mut entries = vec![
        ("authorization".to_owned(), format!("Bearer {}", settings.farm_token).into_bytes()),
        ("content-type".to_owned(), b"application/json".to_vec()),
        ("content-length".to_owned(), length.to_string().into_bytes()),
        (wire::REQUEST_ID.to_owned(), trace.request_id.clone().into_bytes()),
        (wire::JOB_ID.to_owned(), trace.job_id.clone().into_bytes()),
        (wire::DEADLINE_MS.to_owned(), remaining.as_millis().to_string().into_bytes()),
        (wire::TRACEPARENT.to_owned(), trace.traceparent.clone()),
    ];
    entries.extend(trace.tracestate.clone().map(|state| (wire::TRACESTATE.to_owned(), state)));
    Fields::from_list(&entries).map_err(|error| {
        Failure::new(ApiError::Internal, format!("cannot build the request to the farm: {error:?}"))
    })
}

fn request(
    farm: &FarmAddress,
    headers: Fields,
    body: StreamReader<u8>,
    trailers: TrailersReader,
    remaining: Duration,
) -> (Request, FutureReader<Result<(), ErrorCode>>) {
    // The edge does not read the file, so the platform has to detect a stalled transfer. A platform that
    // does not support this option applies its own limit.
    let options = RequestOptions::new();
    let _ = options.set_between_bytes_timeout(u64::try_from(remaining.as_nanos()).ok());
    let (request, transmitted) = Request::new(headers, Some(body), trailers, Some(options));
    let scheme = if farm.https { Scheme::Https } else { Scheme::Http };
    let set = request
        .set_method(&Method::Post)
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(&farm.authority)))
        .and_then(|()| request.set_path_with_query(Some(&farm.path)));
    debug_assert!(set.is_ok(), "the parts of farm_url were checked when it was parsed");
    (request, transmitted)
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
    Failure::new(error, format!("{code:?}"))
}

/// The failure of a response other than 200: a refusal of the farm, or the response of a proxy.
async fn refused(response: Response) -> Failure {
    let status = response.get_status_code();
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut stream, _trailers) = Response::consume_body(response, done_reader);
    let body = body::read_up_to(&mut stream, 1024, MAX_REFUSAL_BYTES).await;
    if let Ok(refusal) = serde_json::from_slice::<Refusal>(&body) {
        let cause = format!("farm answered {status}: {refusal:?}");
        return Failure::new(refusal, cause);
    }
    // A proxy answers 503 if it reaches no farm. With any other status a page may have run.
    let error = if status == 503 { ApiError::FarmUnreachable } else { Refusal::Broken.into() };
    Failure::new(error, format!("farm answered {status} without a refusal"))
}
