//! The begin-frame calls of one page, in a browser with begin-frame control.
//!
//! Invariant: a page has at most one frame in progress, because two concurrent frames crash the browser's
//! GPU process. The frame time only increases, because Chromium never draws a frame with an earlier time.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::headless_experimental::{BeginFrameParams, BeginFrameReturns};
use nix::time::{ClockId, clock_gettime};
use platen_cdp::{Call, CdpError, Reply, Session};
use tokio::time::Instant;

/// Resolution of the frame time. Chromium rounds animation times, counted from the start of the document,
/// to a tenth of a millisecond, up or down unpredictably. A whole number of ticks needs no rounding.
const TICKS_PER_MILLISECOND: f64 = 10.0;
/// Largest offset of a frame from its tick, in microseconds: less than half a tick.
const MAX_OFFSET_MICROSECONDS: u32 = 40;
/// Added to each frame time, so that a whole tick is not truncated to the microsecond before it.
const ROUNDING_MARGIN_MS: f64 = 0.000_4;

/// Stages of a frame for each of which Chromium's compositor takes the longest of the page's latest frames, when it
/// expects the time of the next: the main thread's queue and work, the commit, the raster tasks and the activation.
const FRAME_STAGES: u32 = 5;
/// Largest interval of frames. Idle callbacks may run as long, and a page that always has some delays its frames by it.
const MAX_FRAME_INTERVAL: Duration = Duration::from_secs(1);

/// The frame time, which animation callbacks and animations use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FrameTime {
    Now,
    /// This many milliseconds after the previous frame, at least one tick.
    After(f64),
    /// The time of the previous frame, as closely as possible, so that nothing moves.
    Same,
}

#[derive(Debug, Default)]
pub(crate) struct BeginFrames {
    /// The frame in progress, also if its caller was cancelled.
    in_progress: Option<Call<BeginFrameReturns>>,
    /// Origin of the ticks, in milliseconds of Chromium's monotonic clock.
    origin_ms: f64,
    /// Time of the latest frame, in ticks.
    latest_ticks: u64,
    /// Offset of the latest frame from `latest_ticks`.
    offset_microseconds: u32,
    /// How far the frame time is behind the page's clock in virtual time; `None` in real time.
    lag_ms: Option<f64>,
    began: Option<Instant>,
    slowest: Duration,
}

/// Frame interval of a 60 Hz display, in milliseconds.
pub(crate) const FRAME_INTERVAL_MS: f64 = 16.7;
/// [`FRAME_INTERVAL_MS`] as a duration.
pub(crate) const FRAME_DURATION: Duration = Duration::from_micros(16_700);

impl BeginFrames {
    /// Runs one frame and returns its reply. Cancellation-safe: the next call waits for a frame whose
    /// caller was cancelled.
    pub(crate) async fn begin(
        &mut self,
        session: &Session,
        time: FrameTime,
        mut frame: BeginFrameParams,
    ) -> Result<Reply, CdpError> {
        self.finish().await?;
        let latest = self.latest_ticks;
        (self.latest_ticks, self.offset_microseconds) = match time {
            FrameTime::Now => (ticks((monotonic_now_ms() - self.origin_ms).ceil()).max(latest + 1), 0),
            FrameTime::After(milliseconds) => (latest + ticks(milliseconds).max(1), 0),
            FrameTime::Same if self.offset_microseconds == MAX_OFFSET_MICROSECONDS => (latest + 1, 0),
            FrameTime::Same => (latest, self.offset_microseconds + 1),
        };
        let offset_ms = f64::from(self.offset_microseconds) / 1_000.0;
        frame.frame_time_ticks = Some(self.latest_ms() + offset_ms + ROUNDING_MARGIN_MS);
        frame.interval = Some(self.interval_ms());
        self.began = Some(Instant::now());
        let reply = self.in_progress.insert(session.start(&frame)?).reply().await;
        self.ended();
        reply
    }

    /// The interval until the next frame is expected. Idle callbacks run until then, by the page's clock.
    ///
    /// Invariant: it is not shorter than the frames of the page. Otherwise Chromium's compositor draws what scrolling or an
    /// animated image has changed without waiting for the main thread, and the frame never ends if the main thread changes
    /// something as well: these changes are not drawn before the others, and the others not without them.
    fn interval_ms(&self) -> f64 {
        let interval = match self.lag_ms {
            // It must not depend on the machine.
            Some(_) => MAX_FRAME_INTERVAL,
            None => (FRAME_STAGES * self.slowest).clamp(FRAME_DURATION, MAX_FRAME_INTERVAL),
        };
        interval.as_secs_f64() * 1_000.0 + self.lag_ms.unwrap_or_default()
    }

    fn ended(&mut self) {
        self.in_progress = None;
        self.slowest = self.slowest.max(self.began.take().map_or(Duration::ZERO, |began| began.elapsed()));
    }

    /// Time of the latest frame, in milliseconds of Chromium's monotonic clock.
    pub(crate) fn latest_ms(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "the uptime is less than 2^52 ticks")]
        let ticks = self.latest_ticks as f64;
        self.origin_ms + ticks / TICKS_PER_MILLISECOND
    }

    /// Counts ticks from the start of the page's document, in milliseconds of Chromium's monotonic clock.
    pub(crate) fn count_from(&mut self, origin_ms: f64) {
        let latest_ms = self.latest_ms();
        (self.origin_ms, self.latest_ticks) = (origin_ms, ticks((latest_ms - origin_ms).ceil()));
    }

    /// Takes the time at which the page's clock was stopped for virtual time. The frame time continues from
    /// the latest frame: the real time since then depends on the machine, and the picture must not.
    pub(crate) fn enter_virtual_time(&mut self, clock_ms: f64) {
        self.lag_ms = Some((clock_ms - self.latest_ms()).max(0.0));
    }

    /// Returns by how much the frame time is behind the page's clock in virtual time, which the next frame is to make up for.
    pub(crate) fn catch_up(&mut self) -> f64 {
        self.lag_ms.as_mut().map_or(0.0, std::mem::take)
    }

    pub(crate) async fn finish(&mut self) -> Result<(), CdpError> {
        if let Some(call) = &mut self.in_progress {
            let reply = call.reply().await;
            self.ended();
            reply?;
        }
        Ok(())
    }
}

fn ticks(milliseconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let ticks = (milliseconds * TICKS_PER_MILLISECOND).round() as u64;
    ticks
}

/// `CLOCK_MONOTONIC` in milliseconds, which is Chromium's `base::TimeTicks` on Linux.
pub(crate) fn monotonic_now_ms() -> f64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0.0, |time| Duration::from(time).as_secs_f64() * 1_000.0)
}
