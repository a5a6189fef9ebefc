//! The pauses between starts of a browser that fail.

use std::time::Duration;

/// First pause after a start that failed; doubled each time.
const MIN: Duration = Duration::from_millis(250);
/// A machine that cannot start browsers is not helped by trying more often than this.
const MAX: Duration = Duration::from_secs(15);

/// How long to wait before the next try.
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN)
    }
}

impl Backoff {
    pub(super) async fn wait(&mut self) {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX);
        tokio::time::sleep(pause).await;
    }
}
