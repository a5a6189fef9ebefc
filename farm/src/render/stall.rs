//! The detection of a page that stalls: a frame that does not end, or a step in virtual time.
//!
//! In virtual time a renderer's clock does not advance while a script runs, so a script that loops until a
//! time has passed never ends. It is detected by its CPU time, because the real time of a slow step depends
//! on the load of the machine.

use std::{future::Future, time::Duration};

use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use platen_cdp::{CdpError, Session};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    browser::{Browser, HANG_TIMEOUT},
    error::JobError,
};

/// How often a long step is checked.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// CPU time that a browser may take for one step of its page; three times as much for a frame, which may paint a large page.
pub(super) const MAX_STEP_CPU: Duration = Duration::from_secs(2);

/// Measures one step of a page in virtual time.
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

    /// Restarts the measurement, when the page waits for something outside.
    pub(super) fn reset(&mut self) {
        (self.since, self.cpu) = (Instant::now(), None);
    }

    /// Checks the step, which has failed after [`HANG_TIMEOUT`] whatever its CPU time; to be called every [`CHECK_INTERVAL`].
    ///
    /// # Errors
    /// [`JobError::NeedsRealTime`] if the page stalls in the step.
    pub(super) async fn check(&mut self) -> Result<(), JobError> {
        let cpu = self.browser.cpu_time().await;
        let taken = cpu.saturating_sub(*self.cpu.get_or_insert(cpu));
        if taken < self.max_cpu && self.since.elapsed() < HANG_TIMEOUT {
            return Ok(());
        }
        tracing::debug!(cpu = ?taken, time = ?self.since.elapsed(), "page stalls in virtual time");
        Err(JobError::NeedsRealTime)
    }

    pub(super) async fn watch<T>(
        mut self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        tokio::pin!(step);
        loop {
            match timeout(CHECK_INTERVAL, &mut step).await {
                Ok(done) => return Ok(done?),
                Err(_) => self.check().await?,
            }
        }
    }
}

/// Waits for a frame in real time. It may wait for the main thread, but not for the compositor alone.
///
/// # Errors
/// [`JobError::FrameStalled`] if the main thread responds and the frame does not end afterwards.
pub(super) async fn watch_frame<T>(
    session: &Session,
    frame: impl Future<Output = Result<T, CdpError>>,
) -> Result<T, JobError> {
    tokio::pin!(frame);
    let response = async {
        sleep(CHECK_INTERVAL).await;
        session.call(&EvaluateParams::new("0")).await
    };
    tokio::select! {
        biased;
        done = &mut frame => return Ok(done?),
        responded = response => responded?,
    };
    match timeout(HANG_TIMEOUT, frame).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(JobError::FrameStalled),
    }
}
