//! Rendering one job in a leased browser: `load → settle → capture`, on a page that no other job uses.
//!
//! Invariant: after the job its page is closed, or reset and kept for jobs of the same account.

mod animations;
mod background_work;
mod capture;
mod documents;
mod elements;
mod frame_loop;
mod header_templates;
mod load_state;
mod main_thread;
mod navigations;
mod page_events;
mod page_lease;
mod page_record;
mod prepare;
mod remaining_wait;
mod rendering;
mod resources;
mod script;
mod settle;
mod site;
mod stall;
mod static_page;
mod virtual_time;
mod wait_plan;
mod waits;

use std::{convert::Infallible, sync::Arc, time::Duration};

use platen_cdp::CdpError;
use platen_shared::{
    job::{RenderJob, Source},
    refusal::Refusal,
};
use tokio::time::sleep;

pub use self::documents::Rendered;
use self::{
    page_events::PageEventHandler, page_lease::PageLease, page_record::PageRecord, rendering::Rendering,
    wait_plan::Awaited,
};
pub(crate) use self::{
    page_lease::may_reuse_page,
    remaining_wait::real_wait,
    rendering::{Clock, JobContext},
    site::Site,
};
use crate::{
    browser::Exit,
    error::JobError,
    job_progress::{Phase, PhaseGuard},
    page::Page,
    pool::{Lease, PageRequest, can_end_by},
};

/// A job that runs longer than this is long: another browser may be started for jobs that wait.
const MIN_LONG_JOB_TIME: Duration = Duration::from_secs(2);

/// Renders a job in a leased browser, which is freed when the page is reset or closed, also if this is dropped.
pub(crate) async fn render(
    context: &JobContext<'_>,
    request: &PageRequest,
    pooled: Lease,
) -> Result<Rendered, JobError> {
    // Its pages have no proxy any more. It was found before it is replaced.
    if pooled.browser.has_lost_network_service() {
        pooled.kill("its network service has exited");
        return Err(JobError::NoPage);
    }
    let leasing = context.phases.enter(Phase::Lease);
    let mut lease = PageLease::take(pooled, request).await?;
    drop(leasing);
    let (page, pooled) = lease.page();
    page.kind = Some(request.kind);
    page.tainted |= !request.reuse;
    pooled.browser.allow_picture(context.job.options.viewport.device_pixels());
    let memory = pooled.browser.watch_memory();
    if memory.began_over() {
        pooled.recycle();
    }
    let rendered = tokio::select! {
        biased;
        rendered = Box::pin(run(page, pooled, context)) => rendered,
        () = memory.exceeded() => {
            let mebibytes = pooled.browser.page_memory_mib;
            tracing::warn!(mebibytes, "a page used more memory than --page-memory (PLATEN_PAGE_MEMORY)");
            Err(JobError::Refused(Refusal::PageMemoryExceeded { mebibytes }))
        }
        never = mark_when_long(pooled) => match never {},
    };
    match &rendered {
        Err(JobError::Unresponsive | JobError::FrameStalled) => pooled.kill("a page does not respond"),
        Err(JobError::Refused(Refusal::PageMemoryExceeded { .. })) if pooled.browser.is_over_memory() => {
            pooled.kill("it uses too much memory");
        }
        // What the network sends for a document with an address may be stored.
        Ok(_) if context.site.is_some() && page.proxy.is_used() => {}
        Ok(rendered) if !page.tainted => {
            lease.release(context.job.account.clone(), rendered.is_static);
        }
        _ => {}
    }
    rendered.map(|rendered| rendered.file)
}

/// Marks the job as long when it becomes so. Never completes.
async fn mark_when_long(lease: &Lease) -> Infallible {
    sleep(MIN_LONG_JOB_TIME).await;
    lease.mark_long();
    std::future::pending().await
}

struct RenderedPage {
    file: Rendered,
    is_static: bool,
}

async fn run(page: &mut Page, pooled: &Lease, context: &JobContext<'_>) -> Result<RenderedPage, JobError> {
    page.jobs += 1;
    let loading = context.phases.enter(Phase::Load);
    let prepared = match prepare::prepare(page, context.job, pooled.browser.version()).await {
        Err(JobError::Crashed | JobError::Cdp(CdpError::PageGone))
            if !pooled.browser.connection.is_closed() =>
        {
            return Err(JobError::NoPage);
        }
        prepared => prepared?,
    };
    // What the document before the job's could load is refused.
    let _bound = page.proxy.bind(context.egress);
    let Page { session, events, main_frame, frames, tainted, overrides, .. } = page;
    let user_agent = &overrides.user_agent;
    let (handler, state, records) = PageEventHandler::new(session, main_frame, tainted, user_agent, context);
    let published = (state, Arc::clone(&records));
    let mut rendering =
        Rendering::new(context, pooled, session, main_frame, frames.as_mut(), published, prepared);
    let done = tokio::select! {
        // Polled first, because its error is the cause if a step fails as well.
        biased;
        error = handler.run(events) => Err(error),
        file = steps(&mut rendering, context, loading) => file,
    };
    let (must_close, prints_header) = (rendering.must_close, rendering.header.is_printing);
    page.tainted |= must_close;
    let done = match done {
        // An import that is not loaded crashes Chromium's renderer of headers, or lets it fail.
        Err(JobError::Crashed) if prints_header => Err(JobError::Refused(Refusal::HeaderFailed)),
        Err(JobError::Cdp(CdpError::PageGone | CdpError::Closed)) => Err(page_gone(pooled).await),
        // Requests of the page may have failed. A page that sent none is complete.
        Ok(_) if !page.tainted && !page.proxy.is_used() => done,
        Ok(_) | Err(JobError::Refused(_)) if pooled.browser.has_lost_network_service() => {
            Err(JobError::NetworkServiceExited)
        }
        done => done,
    };
    with_record(done, &records.page.lock(), context.job)
}

/// Adds what the page has done.
///
/// # Errors
/// [`Refusal::FailOn`], and that of `done`.
fn with_record(
    done: Result<RenderedPage, JobError>,
    record: &PageRecord,
    job: &RenderJob,
) -> Result<RenderedPage, JobError> {
    match done {
        Ok(mut rendered) => {
            record.check(&job.options.fail_on).map_err(JobError::Refused)?;
            record.add_to(&mut rendered.file.page);
            if matches!(job.source, Source::Html(_)) {
                rendered.file.page.url = None;
            }
            rendered.file.problems = record.problems();
            Ok(rendered)
        }
        Err(JobError::Refused(refusal)) => Err(JobError::Refused(record.explain(refusal))),
        done => done,
    }
}

/// Loads the page and captures it. `loading` is the phase that has begun.
async fn steps(
    rendering: &mut Rendering<'_>,
    context: &JobContext<'_>,
    loading: PhaseGuard<'_>,
) -> Result<RenderedPage, JobError> {
    // Nothing of the job's page has run until here, however long the wait for its page was.
    if !can_end_by(context.deadline) {
        return Err(JobError::Refused(Refusal::Deadline));
    }
    let wait_ms = context.job.options.wait_for_timeout.get();
    if rendering.awaited(wait_ms) == Awaited::Nothing && rendering.has_begin_frame_control() {
        // An animation may start before the page has loaded, and without a frame Chromium's clock of animations
        // advances in steps of 16.7 ms.
        rendering.pause_animations()?;
    }
    let file = documents::capture_last(rendering, context, loading).await?;
    rendering.resume_animations()?;
    let has_address = context.site.is_some();
    rendering.must_close |= has_address && rendering.scripts.ran;
    Ok(RenderedPage { file, is_static: !has_address && static_page::is_known_static(rendering) })
}

/// Why a page is gone that the farm did not close, and whose renderer did not report a crash.
async fn page_gone(pooled: &Lease) -> JobError {
    match pooled.browser.exit().await {
        // The browser runs, so the page has closed itself.
        None => JobError::Refused(Refusal::PageClosed),
        Some(Exit::Crashed) => JobError::BrowserCrashed,
        Some(Exit::Ended) => JobError::Cdp(CdpError::Closed),
    }
}
