//! The responses of a farm: a small file, or the stream of a large one, which the edge does not read; a refusal.

use std::time::Instant;

use platen_shared::{format::OutputFormat, refusal::Refusal, wire};
use platen_spin::body::{self, TrailersReader};
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
    recent_keys,
    request::failure::{Failure, FarmTimes},
};

/// A file up to this size is read before the response begins, so that both leave in one packet where Nagle's
/// algorithm would hold the second one back. In a larger file, full packets follow the head.
const MAX_WHOLE_BYTES: usize = 256 * 1024;
/// Maximum number of bytes that are read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The body of a successful response.
pub(in crate::request) enum FileBody {
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
pub(in crate::request) struct FarmFile {
    pub(in crate::request) body: FileBody,
    /// HTTP status of the page.
    pub(in crate::request) page_status: Option<String>,
    /// Nothing was open when a wait for the network to be idle ended.
    pub(in crate::request) page_idle: bool,
    pub(in crate::request) times: FarmTimes,
}

impl FileBody {
    /// The length in bytes, if it is known.
    pub(in crate::request) fn length(&self) -> Option<i64> {
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
) -> Result<FarmFile, Failure> {
    let response = client::send(request).await.map_err(|code| no_response(&code))?;
    let (status, headers) = (response.get_status_code(), response.get_headers());
    if headers.get(wire::FARM_ID).is_empty() {
        return Err(not_a_farm(status));
    }
    if status != 200 {
        return Err(refused(response).await);
    }
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
    Failure::new(Refusal::Broken, format!("the farm answered {status} without a refusal"))
}
