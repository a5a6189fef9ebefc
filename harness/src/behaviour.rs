//! How a stand-in farm answers the jobs of an account.

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Response, StatusCode, header};
use platen_shared::{refusal::Refusal, wire};

use crate::{
    latch::LatchWaiter,
    loopback::{Body, BreakOff, break_off, full, streamed},
};

/// The file that it answers with by default.
pub const FILE: &[u8] = b"This is what the stand-in farm calls a file.";
/// The times for which each job waited and had its slot, as it says.
const TIMES_MS: (u64, u64) = (1_007, 2_021);

/// How it answers the jobs of an account.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// [`FILE`].
    File,
    /// A file of this many bytes, each of which is that of [`pattern_byte`].
    LongFile(u64),
    /// A refusal in the form of a farm.
    Refuse(Refusal),
    /// A refusal in the form of a farm once the latch is open.
    RefuseHeld(LatchWaiter, Refusal),
    /// This status, content type and body, without the header of a farm.
    Answer(u16, &'static str, &'static str),
    /// This status, content type and body, with the header of a farm.
    FarmAnswer(u16, &'static str, &'static str),
    /// Part of a file, then the end of the connection.
    BreakOff {
        /// The `content-length`; `None` is a chunked transfer.
        promised: Option<u64>,
        /// Bytes that are sent.
        sent: u64,
        /// The event at which the connection closes.
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

/// The response to a job, of a farm with this [`wire::FARM_ID`].
pub(crate) async fn behave(
    behaviour: Behaviour,
    content_type: &str,
    farm_id: u64,
) -> Result<Response<Body>, BreakOff> {
    let file = |length: Option<u64>, body: Body| {
        let mut response = Response::builder();
        response = response.header(header::CONTENT_TYPE, content_type).header(wire::FARM_ID, farm_id);
        response = response.header(wire::QUEUED_MS, TIMES_MS.0).header(wire::RENDER_MS, TIMES_MS.1);
        if let Some(length) = length {
            response = response.header(header::CONTENT_LENGTH, length);
        }
        response.body(body).map_err(|_| BreakOff)
    };
    let answer = |status: u16, content_type, body| {
        let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
        response.body(full(body)).map_err(|_| BreakOff)
    };
    let pieces = |bytes| stream::iter(long_file(bytes).map(Ok));
    match behaviour {
        Behaviour::File => file(Some(FILE.len() as u64), full(FILE)),
        Behaviour::LongFile(bytes) => file(Some(bytes), streamed(pieces(bytes))),
        Behaviour::Refuse(reason) => Ok(refusal(&reason, farm_id)),
        Behaviour::RefuseHeld(latch, reason) => {
            latch.opened().await;
            Ok(refusal(&reason, farm_id))
        }
        Behaviour::Answer(status, content_type, body) => answer(status, content_type, body),
        Behaviour::FarmAnswer(status, content_type, body) => {
            let mut response = answer(status, content_type, body)?;
            response.headers_mut().insert(wire::FARM_ID, farm_id.into());
            Ok(response)
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
pub(crate) fn refusal(reason: &Refusal, farm_id: u64) -> Response<Body> {
    let body = serde_json::to_vec(reason).unwrap_or_default();
    let mut response = Response::new(full(body));
    // A bad token has a status of the protocol between edge and farm.
    let status = if *reason == Refusal::Unauthorized { 401 } else { reason.reason().status() };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response.headers_mut().insert(wire::FARM_ID, farm_id.into());
    response
}

const PIECE_BYTES: usize = 64 * 1024;
const PERIOD: usize = 251;

/// The pieces of a file of this many bytes, whose pattern has a prime period, so that a lost or repeated piece is detected.
fn long_file(bytes: u64) -> impl Iterator<Item = Bytes> + Send {
    let mut left = bytes;
    let mut start = 0_u64;
    // Slices of one buffer, so that a long file needs no memory.
    let pattern: Bytes =
        (0..PIECE_BYTES + PERIOD).map(|index| pattern_byte(index as u64)).collect::<Vec<_>>().into();
    std::iter::from_fn(move || {
        let length = usize::try_from(left.min(PIECE_BYTES as u64)).ok().filter(|length| *length > 0)?;
        let offset = usize::try_from(start % PERIOD as u64).ok()?;
        left -= length as u64;
        start += length as u64;
        Some(pattern.slice(offset..offset + length))
    })
}

/// The byte of a long file at an offset.
pub fn pattern_byte(offset: u64) -> u8 {
    u8::try_from(offset % PERIOD as u64).unwrap_or_default()
}
