//! The documents of a job: that of its markup or URL, and those to which it navigates.
//!
//! Invariant: a file shows a document that has reached its milestone and is not about to be replaced, unless the page has
//! navigated [`MAX_NAVIGATIONS`] times or the time is over.

use std::pin::pin;

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::page::StopLoadingParams;
use futures::future;
use platen_cdp::CdpError;
use platen_shared::{
    job::{RenderJob, Source, WaitMs},
    refusal::Refusal,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    capture,
    frame_loop::{self, NeededFrames},
    job_error::JobError,
    load_state::{LoadState, reach},
    milestone,
    page_events::MAX_NAVIGATIONS,
    remaining_wait::{CAPTURE_RESERVE, WaitOptions},
    rendering::Rendering,
    settle::{self, Settled},
};
use crate::{
    egress::JobEgress,
    job_progress::{Phase, PhaseGuard},
    pool::Lease,
};

/// Captures of a page until one succeeds. A navigation that is one too many may lead to a document before it is stopped.
const MAX_ATTEMPTS: u32 = 2 * MAX_NAVIGATIONS;

/// A captured document.
pub(super) struct Captured {
    pub(super) file: Bytes,
    /// HTTP status of the document, if it was loaded by HTTP.
    pub(super) status: Option<u16>,
    pub(super) settled: Settled,
}

/// The parts of a job that all its documents share.
#[derive(Clone, Copy)]
pub(super) struct JobContext<'a> {
    pub(super) job: &'a RenderJob,
    pub(super) browser: &'a Lease,
    pub(super) egress: &'a JobEgress,
}

/// Loads the document of the job and captures it, or the one to which it navigates meanwhile. `loading` is the phase that
/// has begun.
pub(super) async fn capture_last(
    rendering: &mut Rendering<'_>,
    context: JobContext<'_>,
    wait: WaitOptions<'_>,
    loading: PhaseGuard<'_>,
) -> Result<Captured, JobError> {
    let (session, state) = (rendering.session, rendering.state.clone());
    let last_navigation = wait.deadline.checked_sub(CAPTURE_RESERVE).unwrap_or(wait.deadline);
    let stopping = async {
        sleep_until(last_navigation).await;
        // The renderer receives no command during a navigation.
        if state.borrow().documents > 0
            && state.borrow().navigating
            && let Err(error) = session.send(&StopLoadingParams {})
        {
            return error.into();
        }
        future::pending().await
    };
    tokio::select! {
        biased;
        captured = follow(rendering, context, wait, last_navigation, loading) => captured,
        error = stopping => Err(error),
    }
}

/// A navigation is waited for until `last_navigation`.
async fn follow(
    rendering: &mut Rendering<'_>,
    context: JobContext<'_>,
    mut wait: WaitOptions<'_>,
    last_navigation: Instant,
    mut loading: PhaseGuard<'_>,
) -> Result<Captured, JobError> {
    let mut navigations = 0;
    loop {
        arrive(rendering, context, wait, navigations == 0).await?;
        let before = rendering.load_state().documents;
        let phases = loading.end();
        let settling = phases.enter(Phase::Settle);
        let captured = capture(rendering, context, &mut wait, settling).await;
        let after = rendering.load_state();
        let navigates = after.is_between_documents(wait.until)
            || captured.is_err() && (after.documents > before || after.navigation_cancelled);
        let captured = match captured {
            Ok(captured) if !navigates || !rendering.follows_navigation => return Ok(captured),
            Err(error) if !navigates => return Err(error),
            Err(error) if navigations >= MAX_ATTEMPTS => return Err(of_navigating_page(error)),
            captured => captured,
        };
        loading = phases.enter(Phase::Load);
        let ended = |state: &LoadState| !state.navigating || state.documents > after.documents;
        let in_time = timeout_at(last_navigation, reach(&mut rendering.state, ended)).await.is_ok();
        let now = rendering.load_state();
        if let Ok(captured) = captured
            && now.documents == after.documents
            && !(in_time && now.is_between_documents(wait.until))
        {
            // The navigation has led to no other document.
            return Ok(captured);
        }
        if rendering.in_virtual_time {
            return Err(JobError::NeedsRealTime);
        }
        rendering.forget_document();
        navigations += 1;
        rendering.follows_navigation = in_time && navigations < MAX_NAVIGATIONS;
    }
}

/// Waits for the milestone of the document, and loads it before that if it is the first.
async fn arrive(
    rendering: &mut Rendering<'_>,
    context: JobContext<'_>,
    wait: WaitOptions<'_>,
    is_first: bool,
) -> Result<(), JobError> {
    let Rendering { session, main_frame, .. } = *rendering;
    let (needed, mut state) = (NeededFrames::default(), rendering.state.clone());
    let arrived = pin!(async {
        if is_first {
            milestone::load(session, main_frame, &context.job.source, context.egress, &mut state).await?;
        }
        milestone::reached(session, main_frame, &mut state, wait.until, &needed).await
    });
    frame_loop::while_loading(rendering, &needed, arrived).await
}

/// Waits for the page as long as the job asks for, and captures it. `settling` is the phase that has begun.
///
/// # Errors
/// [`JobError::Navigates`] if the page is about to have another document.
async fn capture(
    rendering: &mut Rendering<'_>,
    JobContext { job, browser, .. }: JobContext<'_>,
    wait: &mut WaitOptions<'_>,
    settling: PhaseGuard<'_>,
) -> Result<Captured, JobError> {
    let settled = settle::settle(rendering, *wait).await?;
    let phases = settling.end();
    if let Some(waiting) = settled.waiting {
        browser.waited(waiting);
    }
    // The job's time has passed. A document that follows has its milestone and no more.
    wait.timeout = WaitMs::default();
    rendering.check_navigation(wait.until)?;
    let LoadState { documents, page_status: status, .. } = rendering.load_state();
    if job.options.fail_on_http_status
        && let Source::Url(url) = &job.source
        && let Some(status) = status.filter(|status| *status >= 400)
    {
        let host = url.as_url().host_str().unwrap_or_default().to_owned();
        return Err(JobError::Refused(Refusal::PageStatus { host, status }));
    }
    let _capturing = phases.enter(Phase::Capture);
    let mut state = rendering.state.clone();
    let file = tokio::select! {
        biased;
        () = reach(&mut state, |state| state.documents > documents) => return Err(JobError::Navigates),
        file = capture::capture(rendering, job, settled.script_ran) => file?,
    };
    Ok(Captured { file, status, settled })
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
