//! Request ids and W3C Trace Context, which connect the log lines of all tiers.

use platen_shared::wire;

/// Number of random bytes from which [`Trace::new`] makes ids.
pub const RANDOM_BYTES: usize = 24;
/// Maximum length of a `tracestate` that is forwarded. The specification requires at least this much.
const MAX_TRACESTATE_BYTES: usize = 512;

/// The ids of one request.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    /// The `x-request-id` of the response and of all log lines.
    pub request_id: String,
    /// The `traceparent` of the job.
    pub traceparent: Vec<u8>,
    /// The `tracestate` of the job.
    pub tracestate: Option<Vec<u8>>,
}

impl Trace {
    /// Takes the caller's request id and trace context if they are valid, and generates them from
    /// `random` otherwise. `header` returns the first value of a request header.
    #[must_use]
    pub fn new(header: impl Fn(&str) -> Option<Vec<u8>>, random: [u8; RANDOM_BYTES]) -> Self {
        let random = hex::encode(random);
        let request_id = header(wire::REQUEST_ID)
            .and_then(|id| String::from_utf8(id).ok())
            .filter(|id| wire::is_request_id(id))
            .unwrap_or_else(|| random[..32].to_owned());
        if let Some(traceparent) = header(wire::TRACEPARENT).filter(|parent| is_traceparent(parent)) {
            let tracestate = header(wire::TRACESTATE).filter(|state| state.len() <= MAX_TRACESTATE_BYTES);
            return Self { request_id, traceparent, tracestate };
        }
        let traceparent = format!("00-{}-{}-01", &random[..32], &random[32..48]).into_bytes();
        Self { request_id, traceparent, tracestate: None }
    }
}

/// `version-traceid-parentid-flags` in lower-case hex, where version `ff` is invalid.
fn is_traceparent(value: &[u8]) -> bool {
    let is_valid_at = |(index, byte): (usize, &u8)| match index {
        2 | 35 | 52 => *byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
    };
    value.len() == 55 && value.iter().enumerate().all(is_valid_at) && &value[..2] != b"ff"
}
