//! How many attempts a key in steady use claims ahead, and when.
//!
//! Invariant: a claim is for at most [`MAX_ATTEMPTS`]. The statement may grant fewer.

use platen_statements::claims_ahead::Grant;

/// Attempts of one claim.
pub const MAX_ATTEMPTS: u64 = 64;

/// The number of attempts for the next claim, if one is due after a request has found this many left: when half of the attempts
/// are used, twice as many; when half of the time is over, the same number.
#[must_use]
pub fn next_claim(grant: &Grant, left: u64, now_ms: u64) -> Option<u64> {
    if left <= grant.attempts / 2 {
        return Some(grant.attempts.saturating_mul(2).min(MAX_ATTEMPTS));
    }
    grant.is_half_over(now_ms).then_some(grant.attempts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_double_while_their_attempts_are_used() {
        let next = |attempts, left, now_ms| {
            let mut grant = Grant::of_one(1, "2026-11").lasting(10_000, 5);
            grant.attempts = attempts;
            next_claim(&grant, left, now_ms)
        };
        assert_eq!(next(1, 0, 10_000), Some(2));
        assert_eq!([next(8, 5, 10_001), next(8, 4, 10_001), next(8, 0, 10_001)], [None, Some(16), Some(16)]);
        assert_eq!([next(8, 5, 12_499), next(8, 5, 12_500)], [None, Some(8)]);
        assert_eq!([next(40, 20, 10_001), next(64, 0, 14_999)], [Some(64), Some(64)]);
    }
}
