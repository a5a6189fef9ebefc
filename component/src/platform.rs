//! The clock and randomness.

use std::time::{SystemTime, UNIX_EPOCH};

use spin_sdk::wasip3::random::random::get_random_bytes;

/// Whole seconds since 1970 (UTC).
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
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
