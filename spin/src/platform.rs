//! The clock and randomness.

use std::{
    pin::pin,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::future::{Either, select};
use spin_sdk::{time::sleep, wasip3::random::random::get_random_bytes};

/// Whole seconds since 1970 (UTC).
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
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
