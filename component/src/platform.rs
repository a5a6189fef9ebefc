//! The clock and randomness.

use std::time::{SystemTime, UNIX_EPOCH};

use spin_sdk::wasip3::random::random::get_random_bytes;

/// Whole seconds since 1970 (UTC).
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Bytes of the platform's cryptographic generator, which gives as many as it is asked for.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let given = get_random_bytes(N as u64);
    assert_eq!(given.len(), N, "without randomness no secret may be made");
    bytes.copy_from_slice(&given);
    bytes
}
