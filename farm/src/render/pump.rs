//! The frames a page lives on while it loads and settles, where nothing is drawn unasked.
//!
//! Invariant: whatever a page does with frames (animation callbacks, observers, transitions, lazy
//! pictures) goes on while one of its steps is waited for. In a browser that draws by itself there
//! is nothing to do. Left to others: one frame at a time ([`Frames`]).

use std::{future::Future, time::Duration};

use chromiumoxide_cdp::cdp::browser_protocol::headless_experimental::{BeginFrameParams, ScreenshotParams};
use tokio::time::{self, Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::JobError;
use crate::{
    cdp::{CdpError, Reply, Session},
    frames::{Frames, NoFrame},
};

/// What a screen does. A frame in which nothing changes costs 0.2 ms of CPU.
const INTERVAL: Duration = Duration::from_micros(16_667);

/// Draws the frames of one page.
pub(super) struct Pump<'a> {
    session: &'a Session,
    frames: Option<&'a Frames>,
    gone: &'a CancellationToken,
}

impl<'a> Pump<'a> {
    pub(super) fn new(session: &'a Session, frames: Option<&'a Frames>, gone: &'a CancellationToken) -> Self {
        Self { session, frames, gone }
    }

    /// Whether frames are drawn on demand.
    pub(super) fn draws(&self) -> bool {
        self.frames.is_some()
    }

    /// Draws a frame, and takes a picture of it if asked to.
    pub(super) async fn draw(&self, screenshot: Option<ScreenshotParams>) -> Result<Reply, JobError> {
        let frames = self.frames.ok_or(JobError::NoFile)?;
        let frame = BeginFrameParams { screenshot, ..Default::default() };
        frames.draw(self.session, self.gone, frame).await.map_err(|error| match error {
            NoFrame::HeldUp => JobError::HeldUp,
            NoFrame::Cdp(error) => JobError::Cdp(error),
        })
    }

    /// Draws as often as a screen does until `step` is done. Most pages are done before the first
    /// frame.
    pub(super) async fn during<T>(
        &self,
        step: impl Future<Output = Result<T, JobError>>,
    ) -> Result<T, JobError> {
        let frames = async {
            let mut ticks = time::interval_at(Instant::now() + INTERVAL, INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(error) = self.draw(None).await {
                    return error;
                }
            }
        };
        self.until(step, frames).await
    }

    /// Draws one frame after the other until `step` is done, which waits for nothing else.
    pub(super) async fn without_pause<T>(
        &self,
        step: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, JobError> {
        let frames = async {
            loop {
                if let Err(error) = self.draw(None).await {
                    return error;
                }
            }
        };
        self.until(async { Ok(step.await?) }, frames).await
    }

    async fn until<T>(
        &self,
        step: impl Future<Output = Result<T, JobError>>,
        frames: impl Future<Output = JobError>,
    ) -> Result<T, JobError> {
        if self.frames.is_none() {
            return step.await;
        }
        tokio::select! {
            biased;
            done = step => done,
            error = frames => Err(error),
        }
    }
}
