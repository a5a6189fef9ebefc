//! The minimum progress of a transfer whose speed the other side decides.

use std::time::Duration;

use tokio::time::Instant;

/// Limits of a transfer.
#[derive(Debug)]
pub(super) struct PaceLimits {
    pub(super) total_timeout: Duration,
    /// For a time without any byte.
    pub(super) pause_timeout: Duration,
    /// Time before the average rate counts.
    pub(super) grace: Duration,
    /// Average rate since the end of `grace`.
    pub(super) min_bytes_per_second: u64,
}

/// A transfer and its progress.
#[derive(Debug)]
pub(super) struct Pace {
    limits: &'static PaceLimits,
    began: Instant,
    last_progress: Instant,
    bytes: u64,
}

impl Pace {
    pub(super) fn begin(limits: &'static PaceLimits) -> Self {
        let now = Instant::now();
        Self { limits, began: now, last_progress: now, bytes: 0 }
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.last_progress = Instant::now();
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the transfer fails if no further byte arrives.
    pub(super) fn deadline(&self) -> Instant {
        let limits = self.limits;
        let earned = Duration::from_millis(self.bytes.saturating_mul(1_000) / limits.min_bytes_per_second);
        let rate = limits.grace.saturating_add(earned);
        (self.last_progress + limits.pause_timeout).min(self.began + limits.total_timeout.min(rate))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const LIMITS: PaceLimits = PaceLimits {
        total_timeout: Duration::from_secs(100),
        pause_timeout: Duration::from_secs(15),
        grace: Duration::from_secs(10),
        min_bytes_per_second: 1_000,
    };

    /// Seconds until a transfer fails that gets `bytes` every second.
    async fn seconds_at(bytes: usize) -> u64 {
        let (began, mut pace) = (Instant::now(), Pace::begin(&LIMITS));
        while pace.deadline() > Instant::now() {
            sleep(Duration::from_secs(1)).await;
            pace.advance(bytes);
        }
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_transfer_ends_at_the_first_of_its_limits() {
        assert_eq!(seconds_at(0).await, 10);
        assert_eq!(seconds_at(500).await, 20);
        assert_eq!(seconds_at(1_000).await, 100);
        let mut fast = Pace::begin(&LIMITS);
        fast.advance(1_000_000);
        assert_eq!(fast.deadline() - Instant::now(), LIMITS.pause_timeout);
        assert_eq!(fast.bytes(), 1_000_000);
    }
}
