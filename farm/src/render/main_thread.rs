//! A frame that the page's main thread has taken part in, and the metrics of the thread.
//!
//! Chromium may draw a frame without the main thread of the page: its compositor requests frames when the main
//! thread needs one, and on a busy machine that request arrives after the frame was drawn. And it notifies
//! intersection observers in a task of low priority, which later commands may overtake.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::performance::GetMetricsParams;
use platen_cdp::{CdpError, Session};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::rendering::Rendering;
use crate::{begin_frames::FrameTime, error::JobError};

/// Defines `own.frame`.
const WATCH: &str = concat!("(", include_str!("watch_frame.js"), ")()");
/// Whether the main thread has had the frame, after the end of its tasks.
const IS_DRAWN: &str = "own.frame.drawn && own.frame.done";
/// Frames that are run for one of the main thread without a pause.
pub(super) const MAX_QUICK_FRAMES: u32 = 4;
/// The pause between further frames. On an overloaded machine the compositor's thread may not run for many milliseconds, while the
/// main thread and the browser do.
pub(super) const FRAME_PAUSE: Duration = Duration::from_millis(4);
/// How long to wait for the tasks of a frame, and after how long the page is taken to never run the callback.
pub(super) const TASKS_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a frame in which the page has run its animation-frame, resize and intersection callbacks and has updated
/// its layout, in real time. The requests that they have sent are recorded.
pub(super) async fn run_frame(rendering: &mut Rendering<'_>, mut time: FrameTime) -> Result<(), JobError> {
    if !rendering.scripts.enabled {
        // No callback runs, and lazy images were loaded with the others.
        return rendering.frame(time, true).await.map(drop);
    }
    rendering.evaluate_isolated(WATCH).await?;
    let Some(mut is_drawn) = rendering.script(IS_DRAWN).await? else {
        // The page has navigated.
        return rendering.frame(time, true).await.map(drop);
    };
    is_drawn.await_promise = Some(true);
    let started = Instant::now();
    for frames in 1_u32.. {
        rendering.frame(time, true).await?;
        time = FrameTime::Same;
        let done = timeout(TASKS_TIMEOUT, rendering.session.start(&is_drawn)?).await;
        // An error means that the page has navigated.
        if !matches!(done, Ok(Ok(done)) if done.result.value == Some(Value::Bool(false))) {
            break;
        }
        if frames < MAX_QUICK_FRAMES {
            continue;
        }
        if rendering.document.lacks_callbacks || started.elapsed() >= TASKS_TIMEOUT {
            rendering.document.lacks_callbacks = true;
            break;
        }
        sleep(FRAME_PAUSE).await;
    }
    Ok(())
}

/// Runs the frame for the scripts of the page that a picture of the viewport is taken in, before another capture.
pub(super) async fn run_last_frame(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if !rendering.scripts.ran || !rendering.has_begin_frame_control() {
        return Ok(());
    }
    if rendering.clock.in_virtual_time {
        return rendering.frame(FrameTime::After(0.0), true).await.map(drop);
    }
    run_frame(rendering, FrameTime::After(0.0)).await
}

/// Metrics of a page's main thread, times in seconds; NaN if Chromium does not report one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RendererMetrics {
    /// CPU time of the page's scripts.
    pub(super) script: f64,
    pub(super) tasks: f64,
    /// Start of the main document, on Chromium's monotonic clock.
    pub(super) navigation_start: f64,
    /// How often styles were calculated and the page was laid out.
    pub(super) layouts: f64,
}

impl RendererMetrics {
    /// Whether a script has run since the CPU time of scripts was `before`.
    #[expect(clippy::float_cmp, reason = "a counter that has not changed is the same number")]
    pub(super) fn has_run_since(self, before: f64) -> bool {
        self.script != before
    }
}

/// Reads the metrics. The main thread answers after its earlier tasks.
pub(super) async fn metrics(session: &Session) -> Result<RendererMetrics, CdpError> {
    let metrics = session.call(&GetMetricsParams {}).await?.metrics;
    let value = |name| {
        let metric = metrics.iter().find(|metric| metric.name == name);
        // NaN is not equal to itself, so there is no proof without the metric.
        metric.map_or(f64::NAN, |metric| metric.value)
    };
    Ok(RendererMetrics {
        script: value("ScriptDuration"),
        tasks: value("TaskDuration"),
        navigation_start: value("NavigationStart"),
        layouts: value("RecalcStyleCount") + value("LayoutCount"),
    })
}
