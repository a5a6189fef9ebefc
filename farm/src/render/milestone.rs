//! Loading the document of a job, until its milestone: `DOMContentLoaded` or `load`.
//!
//! The time origin of the job's document (`performance.timeOrigin`) is within the job.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::page::{NavigateParams, SetDocumentContentParams};
use platen_cdp::Session;
use platen_shared::{format::WaitUntil, job::Source, refusal::Refusal};
use tokio::{sync::watch, task::yield_now, time::sleep};

use super::{
    frame_loop::NeededFrames,
    job_error::JobError,
    load_state::{LoadState, reach},
    navigation_error::navigation_error,
    rendering::unless_refused,
    script,
};
use crate::egress::JobEgress;

/// How often `document.readyState` is read on a page that has no request in progress and has not reached its
/// milestone.
const READY_STATE_INTERVAL: Duration = Duration::from_millis(50);
/// Frames after which a page whose state is complete has loaded, if it does so at all.
const MAX_LOAD_FRAMES: u32 = 4;

/// Loads the page and returns when its document has started to load.
pub(super) async fn load(
    session: &Session,
    main_frame: &str,
    source: &Source,
    egress: &JobEgress,
    state: &mut watch::Receiver<LoadState>,
) -> Result<(), JobError> {
    let before = state.borrow().documents;
    egress.page_started.set();
    match source {
        Source::Html(html) => {
            let content = SetDocumentContentParams::new(main_frame.to_owned(), html.as_str());
            session.call(&content).await?;
        }
        Source::Url(url) => {
            let url = url.as_url();
            let answer = session.call(&NavigateParams::new(url.as_str())).await?;
            if let Some(failure) = answer.error_text.as_deref() {
                // Lets the event handler process the events before this answer, which contain the redirects.
                yield_now().await;
                let host = url.host_str().unwrap_or_default();
                if let Some(error) = navigation_error(failure, url, host, egress) {
                    tracing::debug!(failure, "page could not be loaded");
                    return Err(error);
                }
            }
        }
    }
    reach(state, |state| state.documents > before).await;
    Ok(())
}

/// Waits for the event of the milestone: `DOMContentLoaded` or `load`.
///
/// # Errors
/// [`Refusal::LoadStopped`] if the page has stopped its own loading, so that the event never fires.
pub(super) async fn reached(
    session: &Session,
    main_frame: &str,
    state: &mut watch::Receiver<LoadState>,
    until: WaitUntil,
    frames: &NeededFrames,
) -> Result<(), JobError> {
    let mut watched = state.clone();
    let stopped = async {
        let mut complete_at: Option<(u32, u32)> = None;
        loop {
            sleep(READY_STATE_INTERVAL).await;
            let state = *watched.borrow_and_update();
            if state.requests > 0 {
                continue;
            }
            // Without an answer the page has just navigated.
            let world = session.call(&script::create_world(main_frame)).await.map_err(JobError::from);
            let Some(world) = unless_refused(world)? else { continue };
            let ready = script::evaluate("document.readyState", world.execution_context_id);
            let ready = unless_refused(session.call(&ready).await.map_err(JobError::from))?;
            let complete = ready.is_some_and(|ready| ready.result.value == Some("complete".into()));
            // The event follows the state directly, unless an event handler shows a dialog or something is loaded only
            // when a frame has drawn it. So the state must be complete again after some frames.
            let now = (state.documents, state.dialogs);
            if !complete || complete_at.replace(now) != Some(now) {
                frames.need(if complete { MAX_LOAD_FRAMES } else { 0 });
                continue;
            }
            if frames.left() > 0 {
                continue;
            }
            let cancelled = watched.borrow().navigation_cancelled;
            return if cancelled { Ok(()) } else { Err(JobError::Refused(Refusal::LoadStopped)) };
        }
    };
    tokio::select! {
        biased;
        () = reach(state, |state| state.has_reached(until)) => Ok(()),
        stopped = stopped => stopped,
    }
}
