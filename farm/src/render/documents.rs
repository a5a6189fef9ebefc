//! The documents of a job: that of its markup or URL, and those to which it navigates, each until its milestone:
//! `DOMContentLoaded` or `load`.
//!
//! Invariant: a file shows a document that has reached its milestone and is not about to be replaced, unless the page has
//! navigated [`MAX_NAVIGATIONS`] times or the time is over. The time origin of a document (`performance.timeOrigin`) is
//! within the job.

use std::{
    pin::pin,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::page::{
    NavigateParams, SetDocumentContentParams, StopLoadingParams,
};
use futures::future;
use platen_cdp::{CdpError, Session};
use platen_shared::{
    format::{OutputFormat, WaitUntil},
    job::Source,
    page_report::PageReport,
    refusal::{PageText, Refusal},
};
use tokio::{
    sync::watch,
    task::yield_now,
    time::{Instant, sleep, sleep_until, timeout_at},
};

use super::{
    capture, frame_loop,
    load_state::{DocumentState, LoadState, reach},
    navigations::{MAX_NAVIGATIONS, navigation_error},
    rendering::{JobContext, Rendering, unless_refused},
    script, settle, site,
};
use crate::{
    begin_frames::FRAME_DURATION,
    error::JobError,
    job_progress::{Phase, PhaseGuard, Phases},
};

/// Captures of a page until one succeeds. A navigation that is one too many may lead to a document before it is stopped.
const MAX_ATTEMPTS: u32 = 2 * MAX_NAVIGATIONS;

/// A rendered file.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The file.
    pub bytes: Bytes,
    /// The format of `bytes`.
    pub format: OutputFormat,
    /// What its page did.
    pub page: PageReport,
    /// Texts of the page's first errors and failed requests, in their order.
    pub problems: Vec<PageText>,
}

/// Loads the document of the job and captures it, or the one to which it navigates meanwhile. `loading` is the phase that
/// has begun.
pub(super) async fn capture_last(
    rendering: &mut Rendering<'_>,
    context: &JobContext<'_>,
    loading: PhaseGuard<'_>,
) -> Result<Rendered, JobError> {
    let (session, state) = (rendering.session, rendering.state.clone());
    let last_navigation = rendering.last_wait();
    let stopping = async {
        sleep_until(last_navigation).await;
        // The renderer receives no command during a navigation.
        if state.borrow().document.number > 0 && state.borrow().navigation.in_progress {
            session.send(&StopLoadingParams {})?;
        }
        future::pending::<Result<Rendered, JobError>>().await
    };
    tokio::select! {
        biased;
        captured = follow(rendering, context, last_navigation, loading) => captured,
        error = stopping => error,
    }
}

/// A navigation is waited for until `last_navigation`.
async fn follow(
    rendering: &mut Rendering<'_>,
    context: &JobContext<'_>,
    last_navigation: Instant,
    mut loading: PhaseGuard<'_>,
) -> Result<Rendered, JobError> {
    let mut navigations = 0;
    let mut wait_ms = context.job.options.wait_for_timeout.get();
    loop {
        arrive(rendering, (navigations == 0).then_some(context)).await?;
        let before = rendering.load_state().document.number;
        drop(loading);
        let captured = capture(rendering, context.phases, &mut wait_ms).await;
        let after = rendering.load_state();
        let navigates = rendering.is_between_documents()
            || captured.is_err() && (after.document.number > before || after.navigation.cancelled);
        let captured = match captured {
            Ok(captured) if !navigates || !rendering.document.follows_navigation => return Ok(captured),
            Err(error) if !navigates => return Err(error),
            Err(error) if navigations >= MAX_ATTEMPTS => return Err(of_navigating_page(error)),
            captured => captured,
        };
        if rendering.clock.in_virtual_time {
            // The page's clock stands, and with it the tasks that begin or end the navigation.
            return Err(JobError::NeedsRealTime);
        }
        loading = context.phases.enter(Phase::Load);
        let ended = |state: &LoadState| {
            !state.navigation.in_progress || state.document.number > after.document.number
        };
        let in_time = timeout_at(last_navigation, reach(&mut rendering.state, ended)).await.is_ok();
        if let Ok(captured) = captured
            && rendering.load_state().document.number == after.document.number
            && !(in_time && rendering.is_between_documents())
        {
            // The navigation has led to no other document.
            return Ok(captured);
        }
        rendering.forget_document();
        navigations += 1;
        rendering.document.follows_navigation = in_time && navigations < MAX_NAVIGATIONS;
    }
}

/// Waits for the milestone of the document, and loads it before that through `first`, if it is the first.
async fn arrive(rendering: &mut Rendering<'_>, first: Option<&JobContext<'_>>) -> Result<(), JobError> {
    let Rendering { session, main_frame, job, .. } = *rendering;
    let (needed, mut state) = (AtomicU32::new(0), rendering.state.clone());
    let arrived = pin!(async {
        if let Some(context) = first {
            load(session, main_frame, context, &mut state).await?;
        }
        milestone_reached(session, main_frame, &mut state, job.options.wait_until, &needed).await
    });
    frame_loop::while_loading(rendering, &needed, arrived).await
}

/// Waits for the page as long as the job asks for, and captures it. `wait_ms` is the job's time, which passes once.
///
/// # Errors
/// [`JobError::Navigates`] if the page is about to have another document.
async fn capture(
    rendering: &mut Rendering<'_>,
    phases: &Phases,
    wait_ms: &mut f64,
) -> Result<Rendered, JobError> {
    let job = rendering.job;
    let settling = phases.enter(Phase::Settle);
    let is_idle = settle::settle(rendering, *wait_ms).await?;
    drop(settling);
    // The job's time has passed. A document that follows has its milestone and no more.
    *wait_ms = 0.0;
    rendering.check_navigation()?;
    let DocumentState { number, mut status, .. } = rendering.load_state().document;
    if matches!(job.source, Source::Html(_)) {
        // A document that markup has navigated to is not the caller's page.
        status = None;
    }
    if job.options.fail_on_http_status
        && let Source::Url(url) = &job.source
        && let Some(status) = status.filter(|status| *status >= 400)
    {
        let host = url.as_url().host_str().unwrap_or_default().to_owned();
        return Err(JobError::Refused(Refusal::PageStatus { host, status }));
    }
    let _capturing = phases.enter(Phase::Capture);
    let mut state = rendering.state.clone();
    let (bytes, sheets) = tokio::select! {
        biased;
        () = reach(&mut state, |state| state.document.number > number) => return Err(JobError::Navigates),
        file = async {
            let file = capture::capture(rendering).await?;
            if rendering.scripts.ran || rendering.load_state().requests.sent > 0 {
                rendering.receive_events().await;
            }
            Ok::<_, JobError>(file)
        } => file?,
    };
    let page = PageReport { status, is_idle, sheets, ..PageReport::default() };
    Ok(Rendered { bytes, format: job.options.output.format(), page, problems: Vec::new() })
}

/// The error of a page that has navigated and still does.
fn of_navigating_page(error: JobError) -> JobError {
    match error {
        JobError::Navigates | JobError::NoFile | JobError::Cdp(CdpError::Refused { .. }) => {
            JobError::Refused(Refusal::LoadStopped)
        }
        error => error,
    }
}

/// Frames between two reads of a document's state.
const READY_STATE_FRAMES: u32 = 4;
/// How often the state of a page is complete before it is asked what still delays `load`. The state of markup is complete when
/// it is parsed.
const MAX_COMPLETE_READS: u32 = 20;
/// Whether a document delays the `load` of its page without a request.
const DELAYS_LOAD: &str = concat!("(", include_str!("delays_load.js"), ")()");

/// Loads the page and returns when its document has started to load.
async fn load(
    session: &Session,
    main_frame: &str,
    context: &JobContext<'_>,
    state: &mut watch::Receiver<LoadState>,
) -> Result<(), JobError> {
    let before = state.borrow().document.number;
    let &JobContext { job, site, egress, .. } = context;
    egress.page_started.set();
    let url = match (&job.source, site) {
        (Source::Html(html), None) => {
            let markup = SetDocumentContentParams::new(main_frame.to_owned(), html.as_str());
            session.call(&markup).await?;
            None
        }
        (Source::Html(_), Some(site)) => {
            site::intercept(session, Some(site), false)?;
            Some(site.address())
        }
        (Source::Url(url), _) => Some(url.as_url()),
        (Source::Jinja(_), _) => return Err(JobError::Refused(Refusal::InvalidJob)),
    };
    if let Some(url) = url {
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
    reach(state, |state| state.document.number > before).await;
    Ok(())
}

/// Waits for the event of the milestone: `DOMContentLoaded` or `load`.
///
/// # Errors
/// [`Refusal::LoadStopped`] if the page has stopped its own loading, so that the event never fires.
async fn milestone_reached(
    session: &Session,
    main_frame: &str,
    state: &mut watch::Receiver<LoadState>,
    until: WaitUntil,
    needed: &AtomicU32,
) -> Result<(), JobError> {
    let stopped = loading_stopped(session, main_frame, state.clone(), needed);
    tokio::select! {
        biased;
        () = reach(state, |state| state.has_reached(until)) => Ok(()),
        stopped = stopped => stopped,
    }
}

/// Completes when a navigation that was cancelled has left the document as it is. On a page that has no request in progress,
/// `document.readyState` is read after every third frame.
///
/// # Errors
/// [`Refusal::LoadStopped`].
async fn loading_stopped(
    session: &Session,
    main_frame: &str,
    mut state: watch::Receiver<LoadState>,
    needed: &AtomicU32,
) -> Result<(), JobError> {
    let (mut seen, mut confirmed) = (None, 0);
    loop {
        sleep(3 * FRAME_DURATION).await;
        let LoadState { document, navigation, requests, .. } = *state.borrow_and_update();
        if requests.open > 0 || navigation.in_progress {
            continue;
        }
        let Some(ready) = ready_state(session, main_frame).await? else { continue };
        let is_complete = ready == "complete";
        // The event may follow the state later: an event handler shows a dialog, or something is loaded only when a
        // frame has drawn it. So the page gets frames, and the state must be complete again after some.
        let now = (document.number, document.dialogs, ready);
        if seen.as_ref() != Some(&now) {
            (seen, confirmed) = (Some(now), 0);
            needed.store(if is_complete { READY_STATE_FRAMES } else { 0 }, Relaxed);
            continue;
        }
        if needed.load(Relaxed) > 0 || now.2 == "loading" {
            continue;
        }
        if is_complete {
            if state.borrow().navigation.cancelled {
                return Ok(());
            }
            confirmed += 1;
        }
        if confirmed >= MAX_COMPLETE_READS {
            if !script::is_true_in_a_frame(session, DELAYS_LOAD).await? {
                return Err(JobError::Refused(Refusal::LoadStopped));
            }
            confirmed = 0;
        }
        needed.store(READY_STATE_FRAMES, Relaxed);
    }
}

/// The document's `readyState`; `None` if the page has just navigated.
async fn ready_state(session: &Session, main_frame: &str) -> Result<Option<String>, JobError> {
    let world = unless_refused(session.call(&script::create_world(main_frame)).await)?;
    let Some(world) = world else { return Ok(None) };
    let ready = script::evaluate("document.readyState", world.execution_context_id);
    let ready = unless_refused(session.call(&ready).await)?;
    Ok(ready.and_then(|ready| ready.result.value?.as_str().map(ToOwned::to_owned)))
}
