//! Waiting for an event.
//!
//! Invariant: no result depends on time. [`MAX_WAIT`] only ends a test that hangs.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};

/// The bound of every wait in the tests, far beyond what a loaded machine needs.
pub const MAX_WAIT: Duration = Duration::from_mins(3);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Calls `probe` until it fails or returns a value. Fails after [`MAX_WAIT`].
pub async fn until_some<T>(event: &str, mut probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(value) = probe().await? {
            return Ok(value);
        }
        ensure!(begun.elapsed() < MAX_WAIT, "not within {MAX_WAIT:?}: {event}");
        sleep(POLL_INTERVAL).await;
    }
}

/// Calls `condition` until it fails or is true. Fails after [`MAX_WAIT`].
pub async fn until_true(event: &str, mut condition: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    until_some(event, async || Ok(condition().await?.then_some(()))).await
}

/// Calls `condition` until it is true. Fails after [`MAX_WAIT`].
pub async fn until(event: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    until_some(event, async || Ok(condition().then_some(()))).await
}
