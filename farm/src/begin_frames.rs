//! The begin-frame calls of one page, in a browser that draws only when it is commanded to.
//!
//! Invariant: a page has at most one frame in progress, because two at once in a browser crash its GPU
//! process; and the time of its frames only grows, because a frame that goes back in time is never
//! drawn.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::headless_experimental::{BeginFrameParams, BeginFrameReturns};
use nix::time::{ClockId, clock_gettime};
use platen_cdp::{Call, CdpError, Reply, Session};

/// Ticks of a frame's time in a millisecond. Chromium rounds the times by which a page animates, counted
/// from the beginning of its document, to a tenth of a millisecond, up or down by chance; a time that
/// needs no rounding is the same each time.
const TICKS: f64 = 10.0;
/// Most microseconds that a frame may be past its tick: less than half of one.
const MAX_PAST: u32 = 40;
/// Keeps a time of whole ticks from being cut to the microsecond before, in milliseconds.
const ROUNDING: f64 = 0.000_4;

/// The time that a frame carries: the time of its animation callbacks and animations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FrameTime {
    /// The time at which it is requested.
    Now,
    /// So many milliseconds after the frame before, and at least a tick.
    After(f64),
    /// That of the frame before, as nearly as possible: nothing moves.
    Same,
}

/// The frames of one page.
#[derive(Debug, Default)]
pub(crate) struct BeginFrames {
    /// The frame in progress; also one that its caller no longer waits for.
    in_progress: Option<Call<BeginFrameReturns>>,
    /// From where ticks are counted, in milliseconds of Chromium's monotonic clock.
    origin: f64,
    /// Time of the latest frame, in ticks.
    latest: u64,
    /// Microseconds by which the latest frame was later than that.
    past: u32,
    /// By how many milliseconds the time of frames is behind the page's clock in virtual time.
    lag: f64,
}

/// The time between two frames of a 60 Hz display, in milliseconds.
pub(crate) const FRAME_INTERVAL: f64 = 16.7;

impl BeginFrames {
    /// Runs one frame and returns its reply. May be cancelled: the next call waits for the frame that
    /// was left in progress.
    pub(crate) async fn begin(
        &mut self,
        session: &Session,
        time: FrameTime,
        mut frame: BeginFrameParams,
    ) -> Result<Reply, CdpError> {
        self.finish().await?;
        (self.latest, self.past) = match time {
            FrameTime::Now => (ticks((monotonic_now() - self.origin).ceil()).max(self.latest + 1), 0),
            FrameTime::After(milliseconds) => (self.latest + ticks(milliseconds).max(1), 0),
            FrameTime::Same if self.past == MAX_PAST => (self.latest + 1, 0),
            FrameTime::Same => (self.latest, self.past + 1),
        };
        frame.frame_time_ticks = Some(self.latest() + f64::from(self.past) / 1_000.0 + ROUNDING);
        // Idle callbacks run until the next frame is expected, by the page's clock.
        frame.interval = Some(FRAME_INTERVAL + self.lag);
        let reply = self.in_progress.insert(session.start(&frame)?).reply().await;
        self.in_progress = None;
        reply
    }

    /// Time of the latest frame, in milliseconds of Chromium's monotonic clock.
    pub(crate) fn latest(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a machine runs for less than 2^52 ticks")]
        let ticks = self.latest as f64;
        self.origin + ticks / TICKS
    }

    /// Counts the time of frames from the beginning of the page's document, in milliseconds of Chromium's
    /// monotonic clock.
    pub(crate) fn count_from(&mut self, origin: f64) {
        let latest = self.latest();
        (self.origin, self.latest) = (origin, ticks((latest - origin).ceil()));
    }

    /// Says where the page's clock was stopped for virtual time. The time of frames goes on from the
    /// latest one: how long the page took from there to here depends on the machine, and what the page
    /// draws must not.
    pub(crate) fn enter_virtual_time(&mut self, clock: f64) {
        self.lag = (clock - self.latest()).max(0.0);
    }

    /// Waits for the frame in progress, if there is one.
    pub(crate) async fn finish(&mut self) -> Result<(), CdpError> {
        if let Some(call) = &mut self.in_progress {
            let reply = call.reply().await;
            self.in_progress = None;
            reply?;
        }
        Ok(())
    }
}

/// Milliseconds in ticks.
fn ticks(milliseconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let ticks = (milliseconds * TICKS).round() as u64;
    ticks
}

/// `CLOCK_MONOTONIC`, in milliseconds: on Linux this is the clock of Chromium's `base::TimeTicks`.
pub(crate) fn monotonic_now() -> f64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0.0, |time| Duration::from(time).as_secs_f64() * 1_000.0)
}
