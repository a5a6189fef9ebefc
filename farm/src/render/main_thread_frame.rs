//! A frame that the page's main thread has taken part in.
//!
//! Chromium may draw a frame without the main thread of the page: its compositor requests frames when the main
//! thread needs one, and on a busy machine that request arrives after the frame was drawn. And it notifies
//! intersection observers in a task of low priority, which later commands may overtake.

use std::time::Duration;

use chromiumoxide_cdp::cdp::js_protocol::runtime::{CallFunctionOnParams, EvaluateParams};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{
    job_error::JobError,
    rendering::{Rendering, unless_refused},
};
use crate::begin_frames::FrameTime;

/// Records the next frame of the main thread and the end of its tasks: intersection observers are notified in tasks
/// of low priority, and lazy images start to load in further ones. Runs in the page's own world, because an isolated
/// one takes 17 ms of CPU, half as much as a small job. What the page has replaced is used as it is.
const WATCH: &str = "(() => { const watch = { drawn: false }; watch.done = new Promise(done => { try {\
    const isShown = ({ top, bottom, left, right, width, height }) => width > 0 && height > 0 &&\
        top < innerHeight && left < innerWidth && bottom > 0 && right > 0;\
    const isDeferred = image => image.loading === 'lazy' && !image.complete && !image.currentSrc &&\
        isShown(image.getBoundingClientRect());\
    let left = 100; const check = () => left-- > 0 && Array.prototype.some.call(document.images, isDeferred) ?\
        setTimeout(check, 2) : globalThis.scheduler?.postTask(done, { priority: 'background' }) ?? setTimeout(done);\
    requestAnimationFrame(() => { watch.drawn = true });\
    new IntersectionObserver((_, observer) => { observer.disconnect(); setTimeout(check) })\
    .observe(document.documentElement) } catch { watch.drawn = true; done() } }); return watch })()";
/// Frames that are run for one of the main thread without a pause.
const MAX_QUICK_FRAMES: u32 = 4;
/// Between further frames. On an overloaded machine the compositor's thread may not run for many milliseconds, while the
/// main thread and the browser do.
const FRAME_PAUSE: Duration = Duration::from_millis(4);
/// After this time the page is taken to never run the callback, because it has replaced `requestAnimationFrame`.
const FRAME_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for the tasks of a frame.
const TASKS_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a frame in which the page has run its animation-frame, resize and intersection callbacks and has updated
/// its layout, in real time. The requests that they have sent are recorded.
pub(super) async fn run(rendering: &mut Rendering<'_>, mut time: FrameTime) -> Result<(), JobError> {
    if !rendering.runs_scripts {
        // No callback runs, and lazy images were loaded with the others.
        return rendering.frame(time, true).await.map(drop);
    }
    let session = rendering.session;
    let watch = unless_refused(session.start(&EvaluateParams::new(WATCH))?.await.map_err(JobError::from))?;
    let tasks = CallFunctionOnParams {
        object_id: watch.and_then(|watch| watch.result.object_id),
        await_promise: Some(true),
        ..CallFunctionOnParams::new("function() { return this.drawn && this.done }")
    };
    let started = Instant::now();
    for frames in 1_u32.. {
        rendering.frame(time, true).await?;
        time = FrameTime::Same;
        let done = timeout(TASKS_TIMEOUT, session.start(&tasks)?).await;
        // An error means that the page has navigated.
        if !matches!(done, Ok(Ok(done)) if done.result.value == Some(Value::Bool(false))) {
            break;
        }
        if frames < MAX_QUICK_FRAMES {
            continue;
        }
        if rendering.lacks_callbacks || started.elapsed() >= FRAME_TIMEOUT {
            rendering.lacks_callbacks = true;
            break;
        }
        sleep(FRAME_PAUSE).await;
    }
    Ok(())
}
