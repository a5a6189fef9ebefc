//! Frames of a page while a step of its job is awaited.
//!
//! Invariant: during a step the page has frames, so its animation callbacks, observers, transitions and lazy
//! images progress. A browser without begin-frame control draws them itself.

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use platen_cdp::CdpError;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    main_thread::{self, FRAME_PAUSE},
    rendering::Rendering,
    resources::RESOURCE_TIMEOUT,
    virtual_time::VirtualTimeDriver,
};
use crate::{
    begin_frames::{FRAME_DURATION, FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
};

/// A page starts to load without frames, so that their number and the progress of its animations do not
/// depend on the machine. While requests are in progress, it gets frames after this time, and otherwise after
/// [`RESOURCE_TIMEOUT`].
const FRAMELESS_LOAD_TIMEOUT: Duration = Duration::from_millis(500);
/// Frames without time that a capture may take; after them the page gets time as well.
const MAX_TIMELESS_FRAMES: u32 = 500;

/// Waits until `step` has loaded a page, and runs frames at 60 Hz from the time when the page gets them, or while it needs
/// them. Then its animations run as well. `needed` is the number of frames that a page still needs that waits for nothing else:
/// a `<use>` of another file is loaded when a frame has drawn it.
///
/// # Errors
/// [`JobError::NeedsRealTime`] if the document began during a capture for which scripts were stopped: its own are missing.
pub(super) async fn while_loading<T>(
    rendering: &mut Rendering<'_>,
    needed: &AtomicU32,
    step: impl Future<Output = Result<T, JobError>>,
) -> Result<T, JobError> {
    if rendering.scripts.enabled != rendering.job.options.environment.java_script {
        return Err(JobError::NeedsRealTime);
    }
    let started = Instant::now();
    let frames = async {
        loop {
            sleep(FRAME_DURATION).await;
            if !rendering.has_begin_frame_control() {
                needed.store(needed.load(Relaxed).saturating_sub(1), Relaxed);
                continue;
            }
            let requests = rendering.load_state().requests.open > 0;
            let frameless = if requests { FRAMELESS_LOAD_TIMEOUT } else { RESOURCE_TIMEOUT };
            let left = needed.load(Relaxed);
            if left == 0 && started.elapsed() < frameless {
                continue;
            }
            if left == 0 {
                rendering.resume_animations()?;
            }
            rendering.frame(FrameTime::Now, true).await?;
            needed.store(left.saturating_sub(1), Relaxed);
        }
    };
    race(pin!(step), pin!(frames)).await
}

/// Waits for `step`, which needs frames and time of the page. It gets them after the time of three frames: a shorter step
/// shows the page in a state that does not depend on the machine.
pub(super) async fn while_waiting<T>(
    rendering: &mut Rendering<'_>,
    step: impl Future<Output = Result<T, CdpError>>,
) -> Result<T, JobError> {
    if !rendering.has_begin_frame_control() {
        return Ok(step.await?);
    }
    let mut step = pin!(step);
    let frameless = async {
        sleep(3 * FRAME_DURATION).await;
        // The main thread answers after its present task.
        let _ = rendering.wait_for_page(main_thread::metrics(rendering.session)).await;
    };
    tokio::select! {
        biased;
        done = &mut step => return Ok(done?),
        () = frameless => {}
    }
    let step = pin!(async { Ok(step.await?) });
    if rendering.clock.in_virtual_time {
        let mut driver = VirtualTimeDriver::start(rendering).await?;
        let frames = async {
            loop {
                driver.step(FRAME_INTERVAL_MS, f64::INFINITY).await?;
            }
        };
        return race(step, pin!(frames)).await;
    }
    let frames = async {
        let mut next = Instant::now() + FRAME_DURATION;
        loop {
            sleep_until(next).await;
            rendering.frame(FrameTime::Now, true).await?;
            next = Instant::now().max(next) + FRAME_DURATION;
        }
    };
    race(step, pin!(frames)).await
}

/// Draws frames with an unchanged frame time until `capture` is done.
pub(super) async fn while_capturing<T>(
    rendering: &mut Rendering<'_>,
    capture: impl Future<Output = Result<T, CdpError>>,
) -> Result<T, JobError> {
    if !rendering.has_begin_frame_control() {
        return Ok(capture.await?);
    }
    let mut capture = pin!(capture);
    for _ in 0..MAX_TIMELESS_FRAMES {
        tokio::select! {
            biased;
            done = &mut capture => return Ok(done?),
            // The frame time must not advance, because the number of frames depends on the machine.
            drawn = rendering.frame(FrameTime::Same, true) => drawn.map(drop)?,
        }
        // Each frame is a microsecond later than the one before, so there should be few. Two are enough on an idle machine.
        if let Ok(done) = timeout(FRAME_PAUSE, &mut capture).await {
            return Ok(done?);
        }
    }
    while_waiting(rendering, capture).await
}

/// Waits for `step` while `frames` runs.
async fn race<T>(
    step: Pin<&mut impl Future<Output = Result<T, JobError>>>,
    frames: Pin<&mut impl Future<Output = Result<Infallible, JobError>>>,
) -> Result<T, JobError> {
    tokio::select! {
        biased;
        done = step => done,
        stopped = frames => stopped.map(|never| match never {}),
    }
}
