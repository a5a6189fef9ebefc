//! Names on the wire between edge and farm, and between edge and caller.
//!
//! Invariant: a header name or path that two tiers share is written here once.

/// Where a farm takes jobs.
pub const JOBS_PATH: &str = "/v1/jobs";
/// On a job: an id by which `DELETE` of [`JOBS_PATH`]`/id` cancels it. The edge makes it up for each job,
/// because request ids are the callers', and two may be the same.
pub const JOB_ID: &str = "x-platen-job-id";
/// The error of an outgoing request whose own client disconnected before it was sent, as the platform
/// words it to a component.
pub const DISCONNECTED_UNSENT: &str = "the client disconnected before the request was sent";
/// The same of one that was sent, so that what it asked for may have been done.
pub const DISCONNECTED: &str = "the client disconnected after the request was sent";
/// Request id: on every answer of the edge, and from edge to farm.
pub const REQUEST_ID: &str = "x-request-id";
/// Real time a farm has left for a job, in whole milliseconds.
pub const DEADLINE_MS: &str = "x-platen-deadline-ms";
/// W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace state, handed on as it came.
pub const TRACESTATE: &str = "tracestate";
/// Longest request id taken over from a caller, in characters.
pub const MAX_REQUEST_ID_CHARS: usize = 128;

/// Whether a caller's request id is taken over: 1 to 128 letters, digits, `-`, `_`, `.` or `:`,
/// so that it can stand in a log line as it is.
#[must_use]
pub fn is_request_id(text: &str) -> bool {
    (1..=MAX_REQUEST_ID_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}
