//! The delay before a browser is started after failures: a start that failed, or a browser that exited soon.

use std::time::Duration;

/// Delay after the first failed start; it doubles with each further one.
const MIN_DELAY: Duration = Duration::from_millis(250);
/// More frequent retries only cost CPU on a machine that cannot start browsers.
const MAX_DELAY: Duration = Duration::from_secs(15);

/// A browser that ran for this long has not failed to start.
const MIN_UPTIME: Duration = Duration::from_secs(5);

/// The next delay.
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN_DELAY)
    }
}

impl Backoff {
    /// Waits before the successor of a browser that has exited. There is no delay if it had jobs or ran for a while.
    pub(super) async fn wait_after_exit(&mut self, uptime: Duration, jobs: u32) {
        if jobs > 0 || uptime >= MIN_UPTIME {
            *self = Self::default();
        } else {
            self.wait().await;
        }
    }

    pub(super) async fn wait(&mut self) {
        let delay = self.0;
        self.0 = (delay * 2).min(MAX_DELAY);
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_delay_grows_only_while_browsers_exit_soon_after_their_start() {
        let mut backoff = Backoff::default();
        for doubled in [1, 2, 4, 8] {
            let before = Instant::now();
            backoff.wait_after_exit(Duration::from_secs(1), 0).await;
            assert_eq!(before.elapsed(), MIN_DELAY * doubled);
        }
        for (uptime, jobs) in [(MIN_UPTIME, 0), (Duration::ZERO, 1)] {
            let before = Instant::now();
            backoff.wait_after_exit(uptime, jobs).await;
            assert_eq!(before.elapsed(), Duration::ZERO);
            backoff.wait().await;
            assert_eq!(before.elapsed(), MIN_DELAY);
        }
    }
}
