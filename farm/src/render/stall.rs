//! Recognising a page that does not get through its virtual time.
//!
//! In virtual time a renderer's clock stands still while a script runs, so a script that loops until a
//! time has passed never ends. The CPU time it takes tells it from one that is slow, because how
//! much a page gets of a machine in real time depends on what else runs there.

use std::{future::Future, time::Duration};

use platen_cdp::CdpError;
use tokio::time::{Instant, timeout};

use super::JobError;
use crate::browser::Browser;

/// How often a step that takes long is looked at.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// CPU time that a browser may take for one step of its page.
pub(super) const MAX_STEP_CPU: Duration = Duration::from_secs(2);
/// CPU time that a browser may take for one frame, which may have much to paint.
pub(super) const MAX_FRAME_CPU: Duration = Duration::from_secs(6);
/// Real time after which a step has failed, whatever CPU time it took: its renderer is stopped.
const MAX_STEP_TIME: Duration = Duration::from_secs(10);

/// Watches one step of a page in virtual time.
pub(super) struct StallMeter<'a> {
    browser: &'a Browser,
    max_cpu: Duration,
    since: Instant,
    /// CPU time of the browser at the first check.
    cpu: Option<Duration>,
}

impl<'a> StallMeter<'a> {
    pub(super) fn new(browser: &'a Browser, max_cpu: Duration) -> Self {
        Self { browser, max_cpu, since: Instant::now(), cpu: None }
    }

    /// Begins anew: the page waits for something else.
    pub(super) fn reset(&mut self) {
        (self.since, self.cpu) = (Instant::now(), None);
    }

    /// To be called every [`CHECK_INTERVAL`] that the step lasts.
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] when the page does not get through the step.
    pub(super) fn check(&mut self) -> Result<(), JobError> {
        let cpu = self.browser.cpu_time();
        let taken = cpu.saturating_sub(*self.cpu.get_or_insert(cpu));
        if taken < self.max_cpu && self.since.elapsed() < MAX_STEP_TIME {
            return Ok(());
        }
        tracing::debug!(cpu = ?taken, time = ?self.since.elapsed(), "a page does not get through its virtual time");
        Err(JobError::NeedsRealTime)
    }

    /// Waits for a step.
    pub(super) async fn watch<T>(
        mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        tokio::pin!(step);
        loop {
            match timeout(CHECK_INTERVAL, &mut step).await {
                Ok(done) => return Ok(done?),
                Err(_) => self.check()?,
            }
        }
    }
}
