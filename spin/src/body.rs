//! Bodies: receives one of a request up to a limit, and sends one that is complete or written piece by piece, in a request or in
//! a response.
//!
//! Invariant: memory holds at most the limit plus one byte, independent of what a caller declares or sends. A body
//! that is refused is read and discarded up to [`MAX_DISCARDED_BYTES`], because a platform closes the connection
//! under the sender of an unread body, who then does not see the response.

use std::time::Duration;

use spin_sdk::{
    wasip3::{
        http::types::{ErrorCode, Fields, Request, Response, Trailers},
        wit_future, wit_stream,
    },
    wit_bindgen::{FutureReader, StreamReader, StreamResult, StreamWriter},
};

use crate::{background::Background, platform};

/// Size of a read if the caller does not declare a length.
const READ_BYTES: usize = 64 * 1024;
/// Memory that is reserved for a declared length before any byte has arrived.
const MAX_RESERVE_BYTES: usize = 1024 * 1024;
/// Twice the largest body of the API.
const MAX_DISCARDED_BYTES: usize = 64 * 1024 * 1024;
const MAX_DISCARD_TIME: Duration = Duration::from_secs(30);

/// The end of a body.
pub type TrailersReader = FutureReader<Result<Option<Trailers>, ErrorCode>>;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than the limit.
    #[error("the body is over the limit")]
    TooLarge,
    /// The body ended early.
    #[error("the body could not be read to its end")]
    Incomplete,
}

/// Whether the body is not encoded: no `content-encoding`, or `identity` only.
#[must_use]
pub fn is_identity(values: &[Vec<u8>]) -> bool {
    let mut codings =
        values.iter().flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
}

/// The body of a request.
pub struct IncomingBody {
    declared: Option<u64>,
    /// The sender waits for a response before it sends the body.
    expects_continue: bool,
    /// The stream has ended. Reading it again would be a trap.
    has_ended: bool,
    /// The rest, until it has been read to its end.
    rest: Option<(StreamReader<u8>, TrailersReader)>,
}

impl IncomingBody {
    /// The body of a request with these headers.
    #[must_use]
    pub fn of(request: Request, headers: &Fields) -> Self {
        let declared = headers.get("content-length");
        let declared = declared.first().and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        let (_read_result, read_reader) = wit_future::new(|| Ok(()));
        Self {
            declared,
            expects_continue: headers.has("expect"),
            has_ended: false,
            rest: Some(Request::consume_body(request, read_reader)),
        }
    }

    /// Reads the body, at most `max` bytes. A declared length over the limit is refused before
    /// anything is read.
    ///
    /// # Errors
    /// When the body is over the limit or ends early.
    pub async fn read(&mut self, max: usize) -> Result<Vec<u8>, BodyError> {
        if self.declared.is_some_and(|declared| declared > max as u64) {
            return Err(BodyError::TooLarge);
        }
        let Some((stream, _)) = &mut self.rest else { return Ok(Vec::new()) };
        let declared = self.declared.and_then(|declared| usize::try_from(declared).ok());
        let length = declared.map_or(READ_BYTES, |length| length + 1);
        let bytes = Vec::with_capacity(length.min(MAX_RESERVE_BYTES));
        let (bytes, has_ended) = read_into(bytes, stream, max + 1).await;
        self.has_ended = has_ended;
        if bytes.len() > max {
            return Err(BodyError::TooLarge);
        }
        if let Some((_, trailers)) = self.rest.take() {
            trailers.await.map_err(|_| BodyError::Incomplete)?;
        }
        Ok(bytes)
    }

    /// Reads and discards what has not been read, while the response is sent.
    pub fn discard(self, background: &Background) {
        let Some((mut stream, _trailers)) = self.rest.filter(|_| !self.expects_continue && !self.has_ended)
        else {
            return;
        };
        background.run(async move {
            let discard = async {
                let (mut left, mut buffer) = (MAX_DISCARDED_BYTES, Vec::with_capacity(READ_BYTES));
                while left > 0 {
                    let (result, filled) = stream.read(buffer).await;
                    if !matches!(result, StreamResult::Complete(_)) {
                        break;
                    }
                    left = left.saturating_sub(filled.len());
                    buffer = filled;
                    buffer.clear();
                }
            };
            platform::timeout(MAX_DISCARD_TIME, discard).await;
        });
    }
}

/// Reads until the stream ends or more than `max` bytes have been read.
pub async fn read_up_to(stream: &mut StreamReader<u8>, capacity: usize, max: usize) -> Vec<u8> {
    read_into(Vec::with_capacity(capacity), stream, max + 1).await.0
}

/// Reads until the stream ends or there are `max` bytes, and never further. Returns the bytes, and whether the stream
/// has ended.
async fn read_into(mut bytes: Vec<u8>, stream: &mut StreamReader<u8>, max: usize) -> (Vec<u8>, bool) {
    while bytes.len() < max {
        let left = max - bytes.len();
        if bytes.capacity() - bytes.len() < left.min(READ_BYTES / 4) {
            bytes.reserve_exact(left.min(READ_BYTES.max(bytes.len())));
        }
        // The stream fills the whole capacity, which may be larger.
        if bytes.capacity() > max {
            bytes.shrink_to(max);
        }
        let (result, filled) = stream.read(bytes).await;
        bytes = filled;
        if !matches!(result, StreamResult::Complete(_)) {
            return (bytes, true);
        }
    }
    (bytes, false)
}

/// A body that is sent.
pub struct OutgoingBody {
    /// The bytes.
    pub contents: StreamReader<u8>,
    /// Their end.
    pub trailers: TrailersReader,
    /// Passes the bytes to the platform; whether it took all of them.
    pub transfer: Transfer,
}

/// See [`OutgoingBody::transfer`]. It is polled before the head of its message is passed to the platform, so that
/// the body is ready when the head is sent.
pub type Transfer = std::pin::Pin<Box<dyn Future<Output = bool>>>;

impl OutgoingBody {
    /// A body of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let (mut writer, contents) = wit_stream::new();
        let (trailers_writer, trailers) = wit_future::new(|| Ok(None));
        let transfer = Box::pin(async move {
            let is_complete = writer.write_all(bytes).await.is_empty();
            drop(writer);
            // Fails if the platform does not read the trailers.
            let _ = trailers_writer.write(Ok(None)).await;
            is_complete
        });
        Self { contents, trailers, transfer }
    }

    /// A body of what `write` writes. It is aborted if `write` returns false or is dropped.
    #[must_use]
    pub fn written_by<W: Future<Output = bool> + 'static>(write: impl FnOnce(BodyWriter) -> W) -> Self {
        let (writer, contents) = wit_stream::new();
        let (trailers_writer, trailers) = wit_future::new(aborted);
        let writing = write(BodyWriter(writer));
        let transfer = Box::pin(async move {
            let is_complete = writing.await;
            // Fails if the platform does not read the trailers.
            let _ = trailers_writer.write(if is_complete { Ok(None) } else { aborted() }).await;
            is_complete
        });
        Self { contents, trailers, transfer }
    }
}

fn aborted() -> Result<Option<Trailers>, ErrorCode> {
    Err(ErrorCode::InternalError(None))
}

/// A body that is being sent. It ends when this is dropped.
pub struct BodyWriter(StreamWriter<u8>);

impl BodyWriter {
    /// Sends bytes, and waits until the platform has taken them; `false` if it takes no more.
    pub async fn write(&mut self, bytes: Vec<u8>) -> bool {
        self.0.write_all(bytes).await.is_empty()
    }
}

/// Names and values of headers.
pub type Headers = Vec<(String, Vec<u8>)>;

/// The headers in the platform's form; no headers at all if the platform refuses one of them.
#[must_use]
pub fn fields(entries: &[(String, Vec<u8>)]) -> Fields {
    Fields::from_list(entries).unwrap_or_else(|_| Fields::new())
}

/// A response with this body, and the transfer of the body; sets `content-length`.
#[must_use]
pub fn buffered(status: u16, mut headers: Headers, body: Vec<u8>) -> (Response, Transfer) {
    headers.push(("content-length".into(), body.len().to_string().into_bytes()));
    let OutgoingBody { contents, trailers, transfer } = OutgoingBody::new(body);
    (response(status, &headers, contents, trailers), transfer)
}

/// A response whose body is what `write` writes, and the transfer of the body. `write` returns whether the body is
/// complete; otherwise the transfer is aborted, so that the client does not take the part that it has for the whole.
#[must_use]
pub fn streamed<W: Future<Output = bool> + 'static>(
    status: u16,
    headers: &Headers,
    write: impl FnOnce(BodyWriter) -> W,
) -> (Response, Transfer) {
    let OutgoingBody { contents, trailers, transfer } = OutgoingBody::written_by(write);
    (response(status, headers, contents, trailers), transfer)
}

fn response(
    status: u16,
    headers: &Headers,
    contents: StreamReader<u8>,
    trailers: TrailersReader,
) -> Response {
    let (response, _sent) = Response::new(fields(headers), Some(contents), trailers);
    let set = response.set_status_code(status);
    debug_assert!(set.is_ok(), "the statuses are constants");
    response
}
