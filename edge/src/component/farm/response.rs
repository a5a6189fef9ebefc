//! The responses of a farm: a small file, or the stream of a large one, which the edge does not read; a refusal; a
//! load.

use std::time::Instant;

use platen_component::body::{self, TrailersReader};
use platen_shared::{format::OutputFormat, refusal::Refusal, wire};
use spin_sdk::{
    wasip3::{
        http::{
            client,
            types::{ErrorCode, Fields, Request, Response},
        },
        wit_future,
    },
    wit_bindgen::StreamReader,
};

use crate::{
    api_error::ApiError,
    component::{
        failure::{Failure, FarmTimes},
        settings::Farm,
    },
    farms::Load,
    recent_keys,
};

/// A file up to this size is read before the response begins, so that both leave in one packet where Nagle's
/// algorithm would hold the second one back. In a larger file, full packets follow the head.
const MAX_WHOLE_BYTES: usize = 256 * 1024;
/// Maximum number of bytes that are read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The body of a successful response.
pub(in crate::component) enum FileBody {
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

/// A successful response.
pub(in crate::component) struct FarmFile {
    pub(in crate::component) body: FileBody,
    /// HTTP status of the page.
    pub(in crate::component) page_status: Option<String>,
    /// Nothing was open when a wait for the network to be idle ended.
    pub(in crate::component) page_idle: bool,
    pub(in crate::component) times: FarmTimes,
}

impl FileBody {
    /// The length in bytes, if it is known.
    pub(in crate::component) fn length(&self) -> Option<i64> {
        match self {
            Self::Whole(bytes) => i64::try_from(bytes.len()).ok(),
            Self::Stream { length, .. } => i64::try_from((*length)?).ok(),
        }
    }
}

pub(super) async fn receive(
    request: Request,
    format: OutputFormat,
    deadline: Instant,
    farm: &Farm,
) -> Result<FarmFile, Failure> {
    let response = client::send(request).await.map_err(|code| no_response(&code))?;
    identify(&response, farm);
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
    let (length, times) = (number(&headers, "content-length"), times(&headers));
    let page_status = headers.get(wire::PAGE_STATUS).into_iter().next();
    let page_status =
        page_status.and_then(|status| String::from_utf8(status).ok()).filter(|it| is_status(it));
    let page_idle = headers.get(wire::PAGE_IDLE).is_empty();
    let file = |body| Ok(FarmFile { body, page_status, page_idle, times });
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

/// The value of a header that is a number.
fn number(headers: &Fields, name: &str) -> Option<u64> {
    let value = headers.get(name).into_iter().next()?;
    std::str::from_utf8(&value).ok()?.parse().ok()
}

fn times(headers: &Fields) -> FarmTimes {
    // Larger than any time of a job, and small enough for a column.
    let time = |name| number(headers, name).filter(|time| *time <= u32::MAX.into());
    FarmTimes { queued_ms: time(wire::QUEUED_MS), render_ms: time(wire::RENDER_MS) }
}

fn is_status(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Records which farm has answered.
fn identify(response: &Response, farm: &Farm) {
    let id = response.get_headers().get(wire::FARM_ID).into_iter().next();
    let id = id.and_then(|id| String::from_utf8(id).ok());
    farm.ids().saw(id.as_deref(), Instant::now());
}

/// The load of a farm; `None` if the connection broke without an answer.
pub(super) async fn load(request: Request) -> Option<Result<Load, Failure>> {
    let response = match client::send(request).await {
        Ok(response) => response,
        Err(code) => return unanswered(&code).map(Err),
    };
    let status = response.get_status_code();
    let load = response.get_headers().get(wire::LOAD_PERCENT);
    let load = load.first().and_then(|load| std::str::from_utf8(load).ok()?.parse().ok());
    if let Some(load) = load.filter(|_| status == 204) {
        return Some(Ok(Load(load)));
    }
    let failure = refused(response).await;
    Some(match failure.error {
        // A proxy without a farm.
        ApiError::Refused(Refusal::Broken) if matches!(status, 502 | 504) => {
            Err(Failure { error: ApiError::FarmUnreachable, ..failure })
        }
        // A farm of a version without loads.
        ApiError::Refused(Refusal::Broken) => Ok(Load(0)),
        _ => Err(failure),
    })
}

/// Whether a farm keeps a slot, or keeps none because it is of an earlier version; `None` if the connection broke without
/// an answer.
pub(super) async fn slot(request: Request, farm: &Farm) -> Option<Result<(), Failure>> {
    let response = match client::send(request).await {
        Ok(response) => response,
        Err(code) => return unanswered(&code).map(Err),
    };
    identify(&response, farm);
    let status = response.get_status_code();
    if matches!(status, 204 | 404 | 405) {
        return Some(Ok(()));
    }
    let failure = refused(response).await;
    Some(Err(match failure.error {
        // Nothing was rendered.
        ApiError::Refused(Refusal::Broken) => Failure { error: ApiError::FarmUnreachable, ..failure },
        _ => failure,
    }))
}

/// The failure of a question without a response, which runs no page; `None` if the connection broke.
fn unanswered(code: &ErrorCode) -> Option<Failure> {
    let failure = no_response(code);
    match failure.error {
        ApiError::Refused(Refusal::Cancelled { .. }) => Some(Refusal::Cancelled { page_ran: false }.into()),
        ApiError::Refused(_) => None,
        _ => Some(failure),
    }
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

/// The failure of a response other than 200: a refusal of the farm, or the response of a proxy.
async fn refused(response: Response) -> Failure {
    let status = response.get_status_code();
    let headers = response.get_headers();
    let not_before = headers.get(wire::NOT_BEFORE_MS).into_iter().next();
    let times = times(&headers);
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut stream, _trailers) = Response::consume_body(response, done_reader);
    let body = body::read_up_to(&mut stream, 1024, MAX_REFUSAL_BYTES).await;
    if let Ok(refusal) = serde_json::from_slice::<Refusal>(&body) {
        let cause = format!("farm answered {status}: {refusal:?}");
        let busy_time = recent_keys::busy_time(&refusal, not_before.as_deref());
        return Failure { busy_time, times, ..Failure::new(refusal, cause) };
    }
    // A proxy answers 503 if it reaches no farm. With any other status a page may have run.
    let error = if status == 503 { ApiError::FarmUnreachable } else { Refusal::Broken.into() };
    Failure::new(error, format!("farm answered {status} without a refusal"))
}
