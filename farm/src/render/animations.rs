//! Animations at their end: CSS animations, transitions and Web Animations.
//!
//! Those that run by time and end are finished, and so are those that their end events start. Those of a view timeline
//! are as when their element is in the middle of its scroll container. Paused ones, endless ones and those of a scroll
//! timeline are left as they are, and so is what scripts draw frame by frame.
//!
//! Invariant: a page without scripts and animations has neither a command nor a frame for this.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::page::{FrameId, FrameTree, GetFrameTreeParams};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    main_thread,
    rendering::Rendering,
    script::{self, unless_refused},
    virtual_time::VirtualTimeDriver,
};
use crate::{
    begin_frames::{FRAME_DURATION, FRAME_INTERVAL_MS, FrameTime},
    error::JobError,
};

/// Finishes the animations of a document and of its open shadow trees, and returns how many it has changed; -1 if it has
/// changed none and prepares a view transition, whose animations begin when the compositor has sent pictures. An animation
/// without an end cannot be finished, which is an error. A view timeline has no time before its first frame. What the style
/// for print begins is finished when printing begins. Properties are read through prototypes, because markup can name those
/// of elements.
const FINISH: &str = "(() => { let changed = 0; const finish = animation => {\
        const { timeline, startTime, playState } = animation;\
        if (playState === 'paused') return;\
        if (timeline instanceof ViewTimeline) { changed++; if (startTime === null) return;\
            animation.pause(); animation.currentTime = CSS.percent(50 - startTime.value) }\
        else if (playState === 'running' && timeline instanceof DocumentTimeline) { animation.finish(); changed++ } };\
    const visit = (root, { getAnimations }, { querySelectorAll }) => {\
        for (const animation of getAnimations.call(root)) try { finish(animation) } catch {}\
        for (const element of querySelectorAll.call(root, '*')) {\
            const tree = Reflect.get(Element.prototype, 'shadowRoot', element);\
            if (tree) visit(tree, ShadowRoot.prototype, DocumentFragment.prototype) } };\
    const all = () => visit(window.document, Document.prototype, Document.prototype);\
    own.finishesPrint ??= matchMedia('print').addEventListener('change', all) ?? true;\
    all(); const read = (type, name, object) => Reflect.get(type.prototype, name, object);\
    const isOfTransition = ({ effect }) => (read(KeyframeEffect, 'pseudoElement', effect) ?? '').startsWith('::view-transition');\
    const prepares = () => read(Document, 'activeViewTransition', window.document)\
        && !Document.prototype.getAnimations.call(window.document).some(isOfTransition);\
    return changed || (prepares() ? -1 : 0) })()";
/// How often animations are finished of which each was started by the end of another.
const MAX_ROUNDS: u32 = 8;
/// Frames after the end of an animation in which a script may start another one: an end event in the first one, and
/// animation-frame callbacks of two further ones, with which libraries separate the styles of a transition.
const FRAMES_PER_ROUND: u32 = 3;
/// How long a view transition may be prepared in real time. Chromium skips one whose document is not ready by then.
const MAX_PREPARATION: Duration = Duration::from_secs(4);
/// How long a request may stop the page's clock in such a frame.
const REQUEST_TIMEOUT_MS: f64 = 1_000.0;

/// Brings the animations of the page and its frames to their end, if the job wants that. `script_ran` says that a script
/// of the page has run, or may have: nothing else notices the end of an animation.
pub(super) async fn finish(rendering: &mut Rendering<'_>, script_ran: bool) -> Result<(), JobError> {
    if !rendering.finishes_animations {
        return Ok(());
    }
    let mut rounds = 0;
    let mut quiet_frames = FRAMES_PER_ROUND;
    let prepared = Instant::now() + MAX_PREPARATION;
    while (script_ran || rendering.load_state().animations > 0) && rounds < MAX_ROUNDS {
        match finish_all(rendering).await? {
            Found::Running => (rounds, quiet_frames) = (rounds + 1, 0),
            Found::Prepared if Instant::now() < prepared => sleep(FRAME_DURATION).await,
            _ if !script_ran || quiet_frames >= FRAMES_PER_ROUND => break,
            _ => quiet_frames += 1,
        }
        frame(rendering).await?;
    }
    Ok(())
}

/// What a page has of animations that can be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    /// A view transition that has no animations yet.
    Prepared,
    /// Some ran, and are finished.
    Running,
}

impl Found {
    /// The result of [`FINISH`].
    fn of(count: Option<&Value>) -> Self {
        match count.and_then(Value::as_i64) {
            None | Some(0) => Self::Nothing,
            Some(..0) => Self::Prepared,
            Some(_) => Self::Running,
        }
    }
}

/// Finishes what runs now, in all frames.
async fn finish_all(rendering: &mut Rendering<'_>) -> Result<Found, JobError> {
    let tree = rendering.wait_for_page(rendering.session.call(&GetFrameTreeParams {})).await?.frame_tree;
    let mut found = Found::of(rendering.evaluate_isolated(FINISH).await?.as_ref());
    for frame in descendants(&tree) {
        // A frame that has just navigated has no world.
        let Some(world) = rendering.world_of_frame(frame.inner()).await? else { continue };
        let evaluate = script::evaluate(FINISH, world);
        let finished = unless_refused(rendering.wait_for_page(rendering.session.call(&evaluate)).await)?;
        found = found.max(Found::of(finished.and_then(|finished| finished.result.value).as_ref()));
    }
    Ok(found)
}

/// The frames within a page.
fn descendants(tree: &FrameTree) -> Vec<&FrameId> {
    let children = tree.child_frames.iter().flatten();
    children.flat_map(|child| std::iter::once(&child.frame.id).chain(descendants(child))).collect()
}

/// A frame in which the page notices what has ended.
async fn frame(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if rendering.in_virtual_time {
        let mut driver = VirtualTimeDriver::start(rendering).await?;
        return driver.step_with_callbacks(FRAME_INTERVAL_MS, REQUEST_TIMEOUT_MS).await;
    }
    if rendering.has_begin_frame_control() {
        return main_thread::run_frame(rendering, FrameTime::Same).await;
    }
    sleep(FRAME_DURATION).await;
    Ok(())
}
