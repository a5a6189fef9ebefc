//! The delay between failed starts of a browser.

use std::time::Duration;

/// Delay after the first failed start; it doubles with each further one.
const MIN_DELAY: Duration = Duration::from_millis(250);
/// More frequent retries only cost CPU on a machine that cannot start browsers.
const MAX_DELAY: Duration = Duration::from_secs(15);

/// The next delay.
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN_DELAY)
    }
}

impl Backoff {
    pub(super) async fn wait(&mut self) {
        let delay = self.0;
        self.0 = (delay * 2).min(MAX_DELAY);
        tokio::time::sleep(delay).await;
    }
}
