//! What a component has of its platform: the clock, randomness, Spin variables and the log.
//!
//! Invariant: an error names the variable and shows no value.

use std::{
    error::Error,
    io::Write as _,
    pin::pin,
    sync::{LazyLock, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::future::{Either, select};
use platen_shared::{log_line::LogLine, wire};
use spin_sdk::{time::sleep, variables, wasip3::random::random::get_random_bytes};

/// Whether this is `platen up`, and not Spin.
#[must_use]
pub fn is_platen_up() -> bool {
    static IS_PLATEN_UP: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os(wire::QUEUES_STATEMENTS).is_some());
    *IS_PLATEN_UP
}

/// Whole seconds since 1970 (UTC).
#[must_use]
pub fn now() -> u64 {
    now_ms() / 1000
}

/// Milliseconds since 1970 (UTC).
#[must_use]
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The result of `work`; `None`, and the work is dropped, after this duration.
pub async fn timeout<T>(duration: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), pin!(sleep(duration))).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(_) => None,
    }
}

/// Bytes of the platform's cryptographic random generator.
///
/// # Panics
/// When the platform returns another number of bytes, which WASI does not allow.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let random = get_random_bytes(N as u64);
    assert_eq!(random.len(), N, "no secret is made without randomness");
    bytes.copy_from_slice(&random);
    bytes
}

/// A variable that the platform does not provide.
#[derive(Debug, thiserror::Error)]
#[error("the Spin variable {name} could not be read")]
pub struct Unreadable {
    name: &'static str,
    #[source]
    cause: variables::Error,
}

/// The value of a variable.
///
/// # Errors
/// When the manifest does not declare it for this component, or its provider fails.
pub async fn variable(name: &'static str) -> Result<String, Unreadable> {
    variables::get(name).await.map_err(|cause| Unreadable { name, cause })
}

/// The settings in `cell`, which the first call reads. An instance serves a bounded number of requests, so a changed variable
/// takes effect soon.
///
/// # Errors
/// When reading fails; the next request reads again.
pub async fn once<T, E>(
    cell: &'static OnceLock<T>,
    read: impl Future<Output = Result<T, E>>,
) -> Result<&'static T, E> {
    if let Some(settings) = cell.get() {
        return Ok(settings);
    }
    let settings = read.await?;
    Ok(cell.get_or_init(|| settings))
}

/// Writes a line to standard error in one call, so that lines of concurrent requests do not mix. There is no place to report a
/// failure.
pub fn log(line: &LogLine) {
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        let _ = std::io::stderr().write_all(&text);
    }
}

/// An error with the chain of its causes.
#[must_use]
pub fn with_causes(mut error: &dyn Error) -> String {
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    text
}
