//! Waiting for the milestone of the job, and then for its time.
//!
//! Real time passes until the page's main thread is idle and no request is in progress. The rest of the wait
//! is skipped if the page is proven to be static (`static_page`), and passes in virtual time otherwise. A
//! page with a worker or a socket, which virtual time does not control, waits in real time.

use std::time::Duration;

use platen_shared::refusal::Refusal;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    animations, background_work, elements, frame_loop,
    main_thread::{self, RendererMetrics},
    remaining_wait::RemainingWait,
    rendering::{Clock, Rendering},
    script, static_page,
    virtual_time::{self, VirtualTimeDriver},
};
use crate::{
    begin_frames::{FRAME_DURATION, FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
    metrics::Waiting,
};

/// Frames in real time between two measurements of the main thread.
const FRAMES_PER_SAMPLE: u32 = 3;
/// The main thread is idle if it took less than this share of the time.
const MAX_IDLE_SHARE: f64 = 0.25;
/// Stops the blinking of the text caret and shows it, as right after focus. It blinks every 500 ms, a common
/// length of waits, so whether a picture shows it would vary.
const SHOW_CARET: &str = "(() => { let element = document.activeElement; while (element) {\
    const { shadowRoot, isContentEditable, matches, style } = as(HTMLElement, element);\
    if (shadowRoot) { element = shadowRoot.activeElement; continue }\
    const inner = element.contentDocument; if (inner?.nodeType === 9) {\
        element = as(Document, inner).activeElement; continue }\
    if (isContentEditable || matches('input, textarea'))\
    style.setProperty('caret-animation', 'manual', 'important');\
    return } })()";
/// Before the deadline by this time, a condition that is not true is reported, which is more useful than that the time is
/// over.
const CONDITION_RESERVE: Duration = Duration::from_secs(1);
/// How long to wait for the main thread to be idle.
const MAX_BUSY_MS: f64 = 500.0;

/// Waits until the network is idle, if that is the milestone, and then for the job's time. Afterwards the
/// page has had its animation-frame, resize and intersection callbacks. Returns whether nothing is open that a wait for the
/// network to be idle has left out.
pub(super) async fn settle(rendering: &mut Rendering<'_>) -> Result<bool, JobError> {
    let mut left = RemainingWait::new(
        rendering.waits_for_idle_network(),
        rendering.wait_ms,
        rendering.has_condition(),
        rendering.load_state().since,
        rendering.last_wait(),
        rendering.deadline,
    );
    let waiting = pass_wait(rendering, &mut left).await?;
    if rendering.needs_frame() && waiting.is_some_and(|waiting| waiting != Waiting::Skipped) {
        rendering.evaluate_isolated(SHOW_CARET).await?;
    }
    animations::finish(rendering).await?;
    // Printing waits for resources itself.
    if rendering.needs_frame() && rendering.waits_for_resources() {
        frame_loop::settle_resources(rendering).await?;
    }
    if let Some(waiting) = waiting {
        rendering.pooled.metrics.waits.of(waiting).inc();
    }
    let is_open = rendering.load_state().is_requesting(Instant::now());
    Ok(!rendering.waits_for_idle_network() || !is_open && !left.was_cut_off)
}

/// Returns how the wait passed; `None` if there was nothing to wait for.
async fn pass_wait(
    rendering: &mut Rendering<'_>,
    left: &mut RemainingWait,
) -> Result<Option<Waiting>, JobError> {
    if !rendering.has_begin_frame_control() {
        rendering.script_ran =
            has_script_run(rendering).await? || rendering.job.options.wait_for_function.is_some();
        rendering.check_navigation()?;
        check_conditions(rendering, left).await?;
        pass_real_time(rendering, left).await?;
        return Ok(rendering.waits().then_some(Waiting::RealTime));
    }
    if !rendering.waits() {
        // The file shows the page as it has loaded, however long the capture takes. The main thread answers the
        // next command after this one; a frame could overtake it, and animations would start to move.
        rendering.pause_animations()?;
    }
    let loaded = main_thread::metrics(rendering.session).await?;
    rendering.check_navigation()?;
    // Another document may be one of another renderer, with metrics of its own.
    let script_ran = has_run(rendering, loaded) || rendering.load_state().documents > 1;
    rendering.script_ran = script_ran;
    rendering.count_frames_from(loaded.navigation_start * 1_000.0);
    if !rendering.waits() {
        if rendering.needs_frame() && rendering.waits_for_resources() {
            frame_loop::wait_for_resources(rendering).await;
        }
        if rendering.needs_frame() || script_ran {
            main_thread::run_frame(rendering, FrameTime::Now).await?;
        }
        return Ok(None);
    }
    if rendering.clock == Clock::Virtual && !script_ran && !rendering.has_condition() {
        pass_real_time(rendering, left).await?;
        if left.is_over() {
            return Ok(Some(Waiting::RealTime));
        }
        if is_static(rendering).await? && (!rendering.needs_frame() || stays_static(rendering).await?) {
            return Ok(Some(Waiting::Skipped));
        }
    }
    if rendering.waits_for_resources() {
        // Without frames, because their number would depend on the network.
        frame_loop::wait_for_resources(rendering).await;
        // The job has waited for their requests already.
        left.since = rendering.load_state().since;
    }
    // A script may run in what follows.
    rendering.script_ran = true;
    // An animation that was created before the first frame starts up to one frame later. The first frame must
    // not be earlier than that, or the animation's progress would depend on when between two frames the page
    // loaded.
    sleep(FRAME_DURATION).await;
    main_thread::run_frame(rendering, FrameTime::Now).await?;
    check_conditions(rendering, left).await?;
    pass_real_time(rendering, left).await?;
    while !until_idle(rendering, left).await? {
        // The page has started a request, a worker or a socket.
        pass_real_time(rendering, left).await?;
    }
    if left.is_over() {
        return Ok(Some(Waiting::RealTime));
    }
    if script_ran && background_work::is_used(rendering).await? {
        rendering.clock = Clock::Real;
        pass_real_time(rendering, left).await?;
        return Ok(Some(Waiting::RealTime));
    }
    let mut driver = VirtualTimeDriver::start(rendering).await?;
    while !left.is_over() {
        let step_ms = left.until_frame(driver.interval_ms());
        driver.step(step_ms, left.request_timeout_ms()).await?;
        left.pass(step_ms, &driver.rendering.load_state());
        check_conditions(driver.rendering, left).await?;
    }
    // A capture may take several frames, and their number depends on the machine.
    rendering.pause_animations()?;
    Ok(Some(Waiting::VirtualTime))
}

async fn has_script_run(rendering: &Rendering<'_>) -> Result<bool, JobError> {
    Ok(has_run(rendering, main_thread::metrics(rendering.session).await?))
}

#[expect(clippy::float_cmp, reason = "a counter that has not changed is the same number")]
fn has_run(rendering: &Rendering<'_>, now: RendererMetrics) -> bool {
    now.script != rendering.script_time_before
}

/// Checks the conditions that the wait still needs, which must be true at once.
///
/// # Errors
/// The refusal for the one that is not true when their time is over, in the page's time or in real time.
async fn check_conditions(rendering: &mut Rendering<'_>, left: &mut RemainingWait) -> Result<(), JobError> {
    let Some(left_ms) = left.condition_ms else { return Ok(()) };
    let options = &rendering.job.options;
    let unmet = match (&options.wait_for_selector, &options.wait_for_function) {
        (Some(selector), _) if !elements::is_visible(rendering, selector).await? => {
            Refusal::ElementNotVisible
        }
        (_, Some(function)) if !script::is_true(rendering, function).await? => Refusal::FunctionNotTrue,
        _ => {
            left.condition_ms = None;
            return Ok(());
        }
    };
    if left_ms <= 0.0 || Instant::now() + CONDITION_RESERVE >= rendering.deadline {
        return Err(JobError::Refused(unmet));
    }
    Ok(())
}

/// Whether the page is proven to be static.
pub(super) async fn is_static(rendering: &Rendering<'_>) -> Result<bool, JobError> {
    if has_script_run(rendering).await? || rendering.load_state().may_change {
        return Ok(false);
    }
    let markup = static_page::markup(rendering).await?;
    Ok(markup.is_some_and(|markup| !static_page::may_change(&markup)) && !changes(rendering))
}

/// Whether a page that was static is still so after its first frame, which starts to load lazy images.
async fn stays_static(rendering: &mut Rendering<'_>) -> Result<bool, JobError> {
    main_thread::run_frame(rendering, FrameTime::Now).await?;
    Ok(!changes(rendering))
}

/// Whether the page has something that may change it: an animation, a frame, a worker, a request in progress.
fn changes(rendering: &Rendering<'_>) -> bool {
    let state = rendering.load_state();
    state.may_change || state.needs_real_time || state.is_requesting(Instant::now())
}

/// Passes real time in frames until the page's main thread is idle or the wait is over: a script that
/// measures its own run time must not run in virtual time. False if the page has started something that needs
/// real time.
///
/// Every frame is run, even a late one, with the frame time at which it was due, so that the number of frames
/// and their times do not depend on the machine.
async fn until_idle(rendering: &mut Rendering<'_>, left: &mut RemainingWait) -> Result<bool, JobError> {
    let mut passed_ms = 0.0;
    while !left.is_over() && passed_ms < MAX_BUSY_MS {
        let tasks = main_thread::metrics(rendering.session).await?.tasks;
        let mut sample_ms = 0.0;
        for frame in 1..=FRAMES_PER_SAMPLE {
            let step_ms = left.until_frame(FRAME_INTERVAL_MS);
            rendering.due_frame(step_ms, frame == FRAMES_PER_SAMPLE).await?;
            sample_ms += step_ms;
            let state = rendering.load_state();
            left.pass(step_ms, &state);
            check_conditions(rendering, left).await?;
            if state.needs_real_time || state.is_requesting(Instant::now()) {
                return Ok(false);
            }
            if left.is_over() {
                return Ok(true);
            }
        }
        passed_ms += sample_ms;
        let busy = main_thread::metrics(rendering.session).await?.tasks - tasks;
        if busy < sample_ms / 1_000.0 * MAX_IDLE_SHARE {
            break;
        }
    }
    Ok(true)
}

/// Passes real time until the wait is over or, with [`Clock::Virtual`], until nothing needs real time. On a page that
/// needs real time, all time since the milestone counts, as its own clock shows it.
async fn pass_real_time(rendering: &mut Rendering<'_>, left: &mut RemainingWait) -> Result<(), JobError> {
    if !rendering.load_state().needs_real_time {
        left.at = Instant::now();
    }
    while !left.is_over() {
        let state = rendering.load_state();
        if rendering.clock == Clock::Virtual && !state.needs_real_time && !state.is_requesting(Instant::now())
        {
            return Ok(());
        }
        sleep_until(left.next_frame(FRAME_INTERVAL_MS)).await;
        if rendering.has_begin_frame_control() {
            if rendering.script_ran {
                virtual_time::keep_alive(rendering).await?;
            }
            rendering.frame(FrameTime::Now, true).await?;
        } else {
            // Waits for the page's main thread.
            main_thread::metrics(rendering.session).await?;
        }
        left.pass_real_time(&rendering.load_state());
        check_conditions(rendering, left).await?;
    }
    // The main thread runs the timers that are due before it answers the second time.
    for _ in 0..2 {
        main_thread::metrics(rendering.session).await?;
    }
    Ok(())
}
