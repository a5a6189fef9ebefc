//! Waiting until a page counts as loaded, and then for as long as the job says.
//!
//! Real time goes on until the page's main thread is idle and no request is in progress. Then the rest
//! of the wait is skipped if the page is proven to stand still (`stillness`), and passes in virtual time
//! otherwise. A page with a worker or a socket, which no virtual clock reaches, is waited for in real
//! time.

use std::time::Duration;

use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use platen_cdp::Session;
use platen_shared::{
    format::WaitUntil,
    job::{Source, WaitMs},
    refusal::Refusal,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    JobError, drawn_resources,
    load::reach,
    load_state::LoadState,
    remaining_wait::RemainingWait,
    rendering::Rendering,
    stillness::{self, MainDocument, RendererMetrics},
    virtual_time::VirtualTimeDriver,
};
use crate::{
    begin_frames::{FRAME_INTERVAL, FrameTime},
    metrics::Waiting,
};

/// How often a page that does not reach its milestone, though it requests nothing, is asked whether it
/// still loads.
const READY_STATE_INTERVAL: Duration = Duration::from_millis(250);
/// Frames that a page has in real time before its main thread is looked at.
const REAL_FRAMES: u32 = 3;
/// The main thread is idle if it took less than this part of the CPU time it could have had.
const IDLE_SHARE: f64 = 0.25;
/// Shows the text caret where it blinks, as right after it got the focus: it blinks every half second, the
/// length of the commonest waits, so chance would decide whether it is seen.
const SHOW_CARET: &str = "(() => { let element = document.activeElement; while (element) {\
    let inner = element.shadowRoot; try { inner ??= element.contentDocument } catch {}\
    if (inner) { element = inner.activeElement; continue }\
    if (element.isContentEditable || element.matches('input, textarea'))\
    element.style.setProperty('caret-animation', 'manual', 'important');\
    return } })()";
/// A main thread that is never idle is waited for no longer than this, in milliseconds.
const MAX_BUSY: f64 = 500.0;

/// What a page is waited for after its document has come, and what that depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait<'a> {
    pub(super) until: WaitUntil,
    pub(super) timeout: WaitMs,
    pub(super) source: &'a Source,
    /// The page's counters before it was delivered.
    pub(super) before: RendererMetrics,
    pub(super) clock: Clock,
    /// When the job has failed.
    pub(super) deadline: Instant,
    /// The page is captured as it was drawn; printing draws it anew.
    pub(super) needs_frame: bool,
}

impl Wait<'_> {
    fn is_none(&self) -> bool {
        self.until != WaitUntil::NetworkIdle && self.timeout.get() <= 0.0
    }

    /// Whether what the page is drawn with is waited for.
    fn is_for_resources(&self) -> bool {
        self.until != WaitUntil::DomContentLoaded
    }
}

/// How the time of a wait may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Not at all or in virtual time, where that gives the same file.
    Virtual,
    /// As on the wall.
    Real,
}

/// Waits for the event that the milestone begins with.
///
/// # Errors
/// [`Refusal::LoadStopped`] if the page has stopped its own loading, so that the event never comes.
pub(super) async fn milestone(
    session: &Session,
    state: &mut watch::Receiver<LoadState>,
    until: WaitUntil,
) -> Result<(), JobError> {
    let is_reached = move |state: &LoadState| match until {
        WaitUntil::DomContentLoaded => state.parsed,
        WaitUntil::Load | WaitUntil::NetworkIdle => state.loaded,
    };
    let mut watched = state.clone();
    let stopped = async {
        let mut complete_at: Option<(u32, u32)> = None;
        loop {
            sleep(READY_STATE_INTERVAL).await;
            let state = *watched.borrow_and_update();
            let ready = EvaluateParams::new("document.readyState");
            let answer = if state.requests == 0 { session.call(&ready).await? } else { continue };
            let complete = answer.result.value.as_ref().is_some_and(|value| value == "complete");
            // The event comes with the state, but for an event handler that shows a dialog. So it must
            // be the same twice.
            let now = (state.documents, state.dialogs);
            if !complete || complete_at.replace(now) != Some(now) {
                continue;
            }
            let cancelled = watched.borrow().navigation_cancelled;
            return if cancelled { Ok(()) } else { Err(JobError::Refused(Refusal::LoadStopped)) };
        }
    };
    tokio::select! {
        biased;
        () = reach(state, is_reached) => Ok(()),
        stopped = stopped => stopped,
    }
}

/// Waits for the network, if that is the milestone, and then for the job's own time. Afterwards the page
/// has had its animation-frame, resize and intersection callbacks. Returns how the time passed, if there
/// was anything to wait for.
pub(super) async fn settle(rendering: &mut Rendering<'_>, wait: Wait<'_>) -> Result<Settled, JobError> {
    let settled = pass_wait(rendering, wait).await?;
    if wait.needs_frame && settled.waiting.is_some_and(|waiting| waiting != Waiting::Skipped) {
        rendering.evaluate_isolated(SHOW_CARET).await?;
    }
    // Printing waits for them by itself.
    if wait.needs_frame && wait.is_for_resources() {
        drawn_resources::settle(rendering).await?;
    }
    Ok(settled)
}

async fn pass_wait(rendering: &mut Rendering<'_>, wait: Wait<'_>) -> Result<Settled, JobError> {
    let Wait { before, clock, needs_frame, .. } = wait;
    let mut left = RemainingWait::new(
        wait.until == WaitUntil::NetworkIdle,
        wait.timeout.get(),
        rendering.load_state().since,
        wait.deadline,
    );
    if !rendering.draws_on_command() {
        let script_ran = has_script_run(rendering, before).await?;
        pass_real_time(rendering, &mut left, Clock::Real).await?;
        return Ok(Settled { waiting: (!wait.is_none()).then_some(Waiting::RealTime), script_ran });
    }
    let loaded = stillness::metrics(rendering.session).await?;
    let script_ran = has_run(before, loaded);
    rendering.count_frames_from(loaded.navigation_start * 1_000.0);
    if wait.is_none() {
        // From here to its file the page is as it has loaded, however long that takes.
        rendering.hold_animations()?;
        if needs_frame && wait.is_for_resources() {
            drawn_resources::wait(rendering).await;
        }
        if needs_frame || script_ran {
            run_callbacks(rendering).await?;
        }
        return Ok(Settled { waiting: None, script_ran });
    }
    if clock == Clock::Virtual && !script_ran {
        pass_real_time(rendering, &mut left, clock).await?;
        if left.is_none() {
            return Ok(Settled { waiting: Some(Waiting::RealTime), script_ran });
        }
        if is_still(rendering, wait).await? && (!needs_frame || stays_still(rendering, before).await?) {
            return Ok(Settled { waiting: Some(Waiting::Skipped), script_ran });
        }
    }
    if wait.is_for_resources() {
        // How many frames there are until then depends on the network; so there are none.
        drawn_resources::wait(rendering).await;
        left.resume(rendering.load_state().since);
    }
    // What was animated before the first frame is dated up to one frame ahead. The frame must not be
    // earlier, or how far an animation is depends on where between two frames the page was loaded.
    sleep(Duration::from_secs_f64(FRAME_INTERVAL / 1_000.0)).await;
    run_callbacks(rendering).await?;
    pass_real_time(rendering, &mut left, clock).await?;
    while !until_idle(rendering, &mut left).await? {
        // What the page has begun meanwhile.
        pass_real_time(rendering, &mut left, clock).await?;
    }
    if left.is_none() {
        return Ok(Settled { waiting: Some(Waiting::RealTime), script_ran: true });
    }
    let mut time = VirtualTimeDriver::start(rendering).await?;
    while !left.is_none() {
        let step = left.until_frame(time.interval());
        time.step(step, left.patience()).await?;
        left.pass(step, &time.load_state());
    }
    // A capture of several frames shows the last one of the wait: how many it takes depends on the machine.
    rendering.hold_animations()?;
    Ok(Settled { waiting: Some(Waiting::VirtualTime), script_ran: true })
}

/// How a page has come to rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    /// How the time passed, if there was anything to wait for.
    pub(super) waiting: Option<Waiting>,
    /// Whether a script of the page has run, or may have.
    pub(super) script_ran: bool,
}

async fn has_script_run(rendering: &Rendering<'_>, before: RendererMetrics) -> Result<bool, JobError> {
    Ok(has_run(before, stillness::metrics(rendering.session).await?))
}

#[expect(clippy::float_cmp, reason = "a counter that has not changed is the same number")]
fn has_run(before: RendererMetrics, now: RendererMetrics) -> bool {
    now.script != before.script
}

/// Gives the page its animation-frame, resize and intersection callbacks.
async fn run_callbacks(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    rendering.frame(FrameTime::Now, true).await?;
    // Intersection callbacks are tasks of their own after the frame.
    stillness::metrics(rendering.session).await?;
    Ok(())
}

/// Whether the page is proven to stand still.
async fn is_still(rendering: &Rendering<'_>, wait: Wait<'_>) -> Result<bool, JobError> {
    if has_script_run(rendering, wait.before).await? || rendering.load_state().may_change {
        return Ok(false);
    }
    let document = MainDocument { session: rendering.session, main_frame: rendering.main_frame };
    let has_still_markup = stillness::has_still_markup(document, wait.source).await?;
    let state = rendering.load_state();
    Ok(has_still_markup && !state.may_change && !state.is_requesting(Instant::now()))
}

/// Whether a page that stands still does so in its first frame, too, which begins to load lazy images.
async fn stays_still(rendering: &mut Rendering<'_>, before: RendererMetrics) -> Result<bool, JobError> {
    run_callbacks(rendering).await?;
    let script_ran = has_script_run(rendering, before).await?;
    let state = rendering.load_state();
    Ok(!script_ran && !state.may_change && !state.is_requesting(Instant::now()))
}

/// Lets real time pass, frame by frame, until the page's main thread is idle or nothing is left: a script
/// that measures how long it runs must not meet a clock that stands still. False if the page has begun
/// what needs real time.
///
/// Every frame is run, however late, and carries the time at which it was due, so that how many there are
/// and what time they see does not depend on the machine.
async fn until_idle(rendering: &mut Rendering<'_>, left: &mut RemainingWait) -> Result<bool, JobError> {
    let mut passed = 0.0;
    while !left.is_none() && passed < MAX_BUSY {
        let tasks = stillness::metrics(rendering.session).await?.tasks;
        let mut sampled = 0.0;
        for frame in 1..=REAL_FRAMES {
            let step = left.until_frame(FRAME_INTERVAL);
            rendering.due_frame(step, frame == REAL_FRAMES).await?;
            sampled += step;
            let state = rendering.load_state();
            left.pass(step, &state);
            if state.needs_real_time || state.is_requesting(Instant::now()) {
                return Ok(false);
            }
            if left.is_none() {
                return Ok(true);
            }
        }
        passed += sampled;
        if stillness::metrics(rendering.session).await?.tasks - tasks < sampled / 1_000.0 * IDLE_SHARE {
            break;
        }
    }
    Ok(true)
}

/// Lets real time pass: until what is left has passed, or, unless the clock is real, until nothing goes
/// on that needs it.
///
async fn pass_real_time(
    rendering: &mut Rendering<'_>,
    left: &mut RemainingWait,
    clock: Clock,
) -> Result<(), JobError> {
    let mut at = Instant::now();
    while !left.is_none() {
        let state = rendering.load_state();
        if clock == Clock::Virtual && !state.needs_real_time && !state.is_requesting(at) {
            return Ok(());
        }
        let cpu = rendering.cpu_time();
        let step = left.until_frame(FRAME_INTERVAL);
        sleep_until(at + Duration::from_secs_f64(step / 1_000.0)).await;
        if rendering.draws_on_command() {
            rendering.frame(FrameTime::Now, true).await?;
        } else {
            // Answered by the page's main thread.
            stillness::metrics(rendering.session).await?;
        }
        let now = Instant::now();
        let passed = (now - at).as_secs_f64() * 1_000.0;
        let cpu = || rendering.cpu_time().saturating_sub(cpu).as_secs_f64() * 1_000.0;
        let counted = left.count_late(passed, step, cpu);
        left.pass(counted, &rendering.load_state());
        at = now;
    }
    Ok(())
}
