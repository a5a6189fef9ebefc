//! One job to the farm, and its answer as a stream that nobody here reads.
//!
//! Invariant: an error says whether the browser may have run, because that decides whether the
//! attempt counts. The deadline holds whatever the farm does; dropping the request on the way out
//! tells the farm that nobody waits any more.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use futures::future::{Either, select};
use platen_shared::{job::RenderJob, refusal::Refusal, wire};
use spin_sdk::{
    wasip3::{
        http::{
            client,
            types::{
                ErrorCode, Fields, HeaderError, Method, Request, RequestOptions, Response, Scheme, Trailers,
            },
        },
        random::random::get_random_bytes,
        wit_future, wit_stream,
    },
    wit_bindgen::{self, FutureReader, StreamReader, StreamResult},
};

use super::{ApiError, Failure, Record, Settings};

/// How much longer than the farm's own deadline its answer is waited for: the farm's word on a
/// deadline says more than ours.
const GRACE: Duration = Duration::from_millis(500);
/// Longest `tracestate` handed on; the specification asks for at least this much.
const TRACESTATE_BYTES: usize = 512;
/// Most that is read of a refusal.
const REFUSAL_BYTES: usize = 64 * 1024;

/// A file on its way.
pub(super) struct FileBody {
    pub(super) length: Option<Vec<u8>>,
    pub(super) bytes: StreamReader<u8>,
    pub(super) trailers: FutureReader<Result<Option<Trailers>, ErrorCode>>,
}

impl FileBody {
    /// The length in bytes, where the farm told it.
    pub(super) fn declared_length(&self) -> Option<i64> {
        std::str::from_utf8(self.length.as_deref()?).ok()?.parse().ok()
    }
}

/// What ties the log lines of all tiers together, and names the job.
pub(super) struct Trace {
    pub(super) request_id: String,
    /// By which the job can be cancelled; not a caller's to choose.
    job_id: String,
    parent: Vec<u8>,
    state: Option<Vec<u8>>,
}

impl Trace {
    /// Takes over a caller's request id and W3C trace context where they are well formed, and
    /// makes them where they are not.
    pub(super) fn of(headers: &Fields) -> Self {
        let random = hex(&get_random_bytes(40));
        let given =
            headers.get(wire::REQUEST_ID).into_iter().next().and_then(|id| String::from_utf8(id).ok());
        let request_id =
            given.filter(|id| wire::is_request_id(id)).unwrap_or_else(|| random[..32].to_owned());
        let parent =
            headers.get(wire::TRACEPARENT).into_iter().next().filter(|parent| is_traceparent(parent));
        let (parent, state) = if let Some(parent) = parent {
            let state = headers.get(wire::TRACESTATE).into_iter().next();
            (parent, state.filter(|state| state.len() <= TRACESTATE_BYTES))
        } else {
            (format!("00-{}-{}-01", &random[..32], &random[32..48]).into_bytes(), None)
        };
        Self { request_id, job_id: random[48..].to_owned(), parent, state }
    }
}

fn is_traceparent(value: &[u8]) -> bool {
    let shape = |(index, byte): (usize, &u8)| match index {
        2 | 35 | 52 => *byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
    };
    value.len() == 55 && value.iter().enumerate().all(shape) && &value[..2] != b"ff"
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Sends a job and waits for the head of the answer.
pub(super) async fn render(
    settings: &Settings,
    job: &RenderJob,
    left: Duration,
    trace: &Trace,
    record: &mut Record,
) -> Result<FileBody, Failure> {
    let body = serde_json::to_vec(job).map_err(Failure::internal)?;
    let request = request(settings, body.len(), left, trace).map_err(Failure::internal)?;
    let started = Instant::now();
    let (mut writer, reader) = wit_stream::new();
    let (trailers_writer, trailers) = wit_future::new(|| Ok(None));
    drop(trailers_writer);
    let (request, _sent) = request.into_request(reader, trailers, left);
    wit_bindgen::spawn(async move {
        writer.write_all(body).await;
    });
    let answered = {
        let send = std::pin::pin!(client::send(request));
        let timeout = std::pin::pin!(spin_sdk::time::sleep(left + GRACE));
        match select(send, timeout).await {
            Either::Left((answered, _)) => answered,
            Either::Right(_) => return Err(ApiError::from(Refusal::Deadline).into()),
        }
    };
    record.farm(started.elapsed());
    let response = answered.map_err(|code| unreached(&code))?;
    if response.get_status_code() != 200 {
        return Err(refused(response).await);
    }
    let headers = response.get_headers();
    // A proxy in front of a farm may say 200 with a page of its own.
    let content_type = headers.get("content-type").into_iter().next().unwrap_or_default();
    if content_type != job.output.format().content_type().as_bytes() {
        let cause = format!("farm answered 200 with {:?}", String::from_utf8_lossy(&content_type));
        return Err(Failure { error: Refusal::Broken.into(), cause: Some(cause) });
    }
    let length = headers.get("content-length").into_iter().next();
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (bytes, trailers) = Response::consume_body(response, done_reader);
    Ok(FileBody { length, bytes, trailers })
}

/// A header of ours that the platform does not allow.
#[derive(Debug, thiserror::Error)]
#[error("the request to the farm cannot be built: {0:?}")]
struct BadHeader(HeaderError);

struct Head {
    headers: Fields,
    https: bool,
    authority: String,
    path: String,
}

fn request(settings: &Settings, length: usize, left: Duration, trace: &Trace) -> Result<Head, BadHeader> {
    let mut entries = vec![
        ("authorization".to_owned(), format!("Bearer {}", settings.farm_token).into_bytes()),
        ("content-type".to_owned(), b"application/json".to_vec()),
        ("content-length".to_owned(), length.to_string().into_bytes()),
        (wire::REQUEST_ID.to_owned(), trace.request_id.clone().into_bytes()),
        (wire::JOB_ID.to_owned(), trace.job_id.clone().into_bytes()),
        (wire::DEADLINE_MS.to_owned(), left.as_millis().to_string().into_bytes()),
        (wire::TRACEPARENT.to_owned(), trace.parent.clone()),
    ];
    entries.extend(trace.state.clone().map(|state| (wire::TRACESTATE.to_owned(), state)));
    let headers = Fields::from_list(&entries).map_err(BadHeader)?;
    let farm = &settings.farm;
    Ok(Head { headers, https: farm.https, authority: farm.authority.clone(), path: farm.path.clone() })
}

impl Head {
    fn into_request(
        self,
        body: StreamReader<u8>,
        trailers: FutureReader<Result<Option<Trailers>, ErrorCode>>,
        left: Duration,
    ) -> (Request, FutureReader<Result<(), ErrorCode>>) {
        // Nobody here reads the file, so the platform watches that it does not stall for good; one
        // that cannot has a limit of its own.
        let options = RequestOptions::new();
        let _ = options.set_between_bytes_timeout(u64::try_from(left.as_nanos()).ok());
        let (request, transmitted) = Request::new(self.headers, Some(body), trailers, Some(options));
        let scheme = if self.https { Scheme::Https } else { Scheme::Http };
        let set = request
            .set_method(&Method::Post)
            .and_then(|()| request.set_scheme(Some(&scheme)))
            .and_then(|()| request.set_authority(Some(&self.authority)))
            .and_then(|()| request.set_path_with_query(Some(&self.path)));
        debug_assert!(set.is_ok(), "the parts of farm_url were checked when it was parsed");
        (request, transmitted)
    }
}

/// A request that got no answer: not counted where the farm was never reached.
fn unreached(code: &ErrorCode) -> Failure {
    let error = match code {
        ErrorCode::InternalError(Some(reason)) if reason == wire::DISCONNECTED_UNSENT => {
            Refusal::Cancelled { page_ran: false }.into()
        }
        // Nothing more is known of it.
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
    Failure { error, cause: Some(format!("{code:?}")) }
}

/// An answer that is no file: the farm's refusal, or something that is not a farm's word at all.
async fn refused(response: Response) -> Failure {
    let status = response.get_status_code();
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut stream, _trailers) = Response::consume_body(response, done_reader);
    let mut body = Vec::with_capacity(1024);
    while body.len() < REFUSAL_BYTES {
        if body.capacity() == body.len() {
            body.reserve(4096);
        }
        let (result, filled) = stream.read(body).await;
        body = filled;
        if !matches!(result, StreamResult::Complete(_)) {
            break;
        }
    }
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(refusal) => {
            let cause = format!("farm answered {status}: {refusal:?}");
            Failure { error: refusal.into(), cause: Some(cause) }
        }
        Err(_) => Failure {
            // By 503 a proxy says that it reaches no farm. Anything else may come after the page has run.
            error: if status == 503 { ApiError::FarmUnreachable } else { Refusal::Broken.into() },
            cause: Some(format!("farm answered {status} without a refusal")),
        },
    }
}
