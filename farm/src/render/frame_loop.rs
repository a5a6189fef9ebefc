//! Frames of a page while a step of its job is awaited, or the fonts, images and style sheets that it draws.
//!
//! The `load` event does not wait for resources that only the layout requests, such as fonts and background
//! images of an external style sheet. Printing waits for them, and so does every other capture.
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
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::{
    load_state::reach,
    main_thread::{self, FRAME_PAUSE},
    rendering::Rendering,
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

/// How long resources are waited for. After the same time a browser shows text in a fallback font
/// (<https://drafts.csswg.org/css-fonts/#font-display-desc>).
const RESOURCE_TIMEOUT: Duration = Duration::from_secs(3);
/// Frames that are run after resources have loaded; each may make the page request more.
const MAX_RESOURCE_FRAMES: u32 = 3;

/// Waits for the resources that are loading now, except those that [`Rendering::give_up_drawn`] gave up.
pub(super) async fn wait_for_resources(rendering: &mut Rendering<'_>) {
    wait_for_resources_until(rendering, rendering.until(RESOURCE_TIMEOUT)).await;
}

/// Waits for the resources that are loading now and for those that the page requests in the frames after
/// that. Afterwards the page has had a frame with the loaded resources.
pub(super) async fn settle_resources(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    let until = rendering.until(RESOURCE_TIMEOUT);
    for _ in 0..MAX_RESOURCE_FRAMES {
        if !rendering.is_loading_drawn() {
            break;
        }
        if rendering.clock.in_virtual_time {
            // The page's clock is stopped until the requests have ended.
            let timeout_ms = until.saturating_duration_since(Instant::now()).as_secs_f64() * 1_000.0;
            VirtualTimeDriver::start(rendering)
                .await?
                .step_with_callbacks(FRAME_INTERVAL_MS, timeout_ms)
                .await?;
            if Instant::now() >= until {
                rendering.give_up_drawn();
            }
            continue;
        }
        wait_for_resources_until(rendering, until).await;
        if rendering.has_begin_frame_control() {
            main_thread::run_frame(rendering, FrameTime::Same).await?;
        } else {
            main_thread::metrics(rendering.session).await?;
        }
    }
    Ok(())
}

async fn wait_for_resources_until(rendering: &mut Rendering<'_>, until: Instant) {
    let (latest, given_up) = (rendering.load_state().requests.sent, rendering.given_up);
    let loaded = reach(&mut rendering.state, |state| {
        state.requests.oldest_drawn.is_none_or(|oldest| oldest > latest)
            || !state.requests.is_loading_drawn(given_up)
    });
    if timeout_at(until, loaded).await.is_err() {
        rendering.give_up_drawn();
    }
}
