//! Paths, header names and error texts that two tiers share.

/// The path to which jobs are posted.
pub const JOBS_PATH: &str = "/v1/jobs";
/// Status of a farm's response to a job with files of a template whose contents it needs. The job has not begun.
pub const CONTENTS_NEEDED: u16 = 428;
/// The path to which jobs are posted whose templates are to be filled and not rendered.
pub const FILL_PATH: &str = "/v1/fill";
/// Header of every response of a farm: a random name of the process. A response without it is that of a proxy, or of a
/// server that is no farm.
pub const FARM_ID: &str = "x-platen-farm-id";
/// Text of the error that the host gives a component for an outgoing request, if the component's own
/// client disconnected before the request was sent.
pub const DISCONNECTED_UNSENT: &str = "the client disconnected before the request was sent";
/// Text of the error if the client disconnected after the request was sent, so that the farm may have acted on it.
pub const DISCONNECTED: &str = "the client disconnected after the request was sent";
/// Header of every response of the edge, and of requests from edge to farm.
pub const REQUEST_ID: &str = "x-request-id";
/// Header of a job: the real time that remains for it, in whole milliseconds.
pub const DEADLINE_MS: &str = "x-platen-deadline-ms";
/// Header that `platen up` sets on requests to components: how long the request has waited in the server since
/// its head arrived, without the time in which its body arrived, in whole milliseconds.
pub const AGE_MS: &str = "x-platen-age-ms";
/// Header that `platen up` sets on requests to components whose key was valid within the last hour.
pub const VALID_KEY: &str = "x-platen-valid-key";
/// Header of a farm's response to a job: how long the job waited for its slot, in whole milliseconds.
pub const QUEUED_MS: &str = "x-platen-queued-ms";
/// Header of a farm's response to a job that had a slot: for how long, in whole milliseconds.
pub const RENDER_MS: &str = "x-platen-render-ms";
/// Header of a job: a hash of the account, by which a proxy can send the jobs of an account
/// to the farm that has its pages.
pub const ACCOUNT: &str = "x-platen-account";
/// Environment variable of components on `platen up`: the platform gives each client's statements their turns, so
/// components need not limit how many they run at once.
pub const QUEUES_STATEMENTS: &str = "PLATEN_QUEUES_STATEMENTS";
/// Name in the key-value store of the API's component: `platen up` sets it when requests have ended after a signal, so that the
/// component gives back the attempts that it has claimed ahead.
pub const DRAINING: &str = "draining";
/// Header of the W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// Header of a job with the value of [`TRACEPARENT`], which has precedence: Spin replaces that header of outgoing requests
/// by one of another trace, because it does not know on whose behalf a component sends a request.
pub const JOB_TRACEPARENT: &str = "x-platen-traceparent";
/// Header of the W3C Trace Context, forwarded unchanged.
pub const TRACESTATE: &str = "tracestate";
/// Maximum length of a caller's request id in characters.
pub const MAX_REQUEST_ID_CHARS: usize = 128;

/// Whether a caller's request id is accepted: 1 to 128 letters, digits, `-`, `_`, `.` or `:`, which need
/// no escaping in a log line.
#[must_use]
pub fn is_request_id(text: &str) -> bool {
    (1..=MAX_REQUEST_ID_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}
