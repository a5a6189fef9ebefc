//! Rendering one job with a browser: `load → settle → capture`, on a page that the job has to itself.
//!
//! Invariant: nothing but the file leaves the page; afterwards the page is closed, or reset and kept for
//! a job of the same account.

mod capture;
mod drawn_resources;
mod load;
mod load_state;
mod page_events;
mod page_lease;
mod remaining_wait;
mod rendering;
mod reset;
mod settle;
mod stall;
mod still_image;
mod stillness;
mod virtual_time;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use platen_cdp::CdpError;
use platen_shared::{
    format::OutputFormat,
    job::{RenderJob, Source},
    refusal::Refusal,
};
use tokio::{
    task::JoinError,
    time::{Instant, sleep, timeout_at},
};

pub(crate) use self::settle::Clock;
use self::{page_events::PageEventHandler, page_lease::PageLease, rendering::Rendering, settle::Wait};
use crate::{
    admission::Slot,
    browser::ForegroundJob,
    egress::JobEgress,
    page::Page,
    pool::{BrowserLease, PageRequest},
};

/// A job that runs for longer than this makes room for others: another browser may be started for those
/// that wait.
const LONG_JOB: Duration = Duration::from_secs(2);
/// A job is in the foreground when it begins, for this long: most jobs end before that. From then on the
/// CPU time of its browser is measured at this interval.
const USAGE_INTERVAL: Duration = Duration::from_millis(500);
/// A job whose browser takes this much CPU time within [`USAGE_INTERVAL`] is heavy: its browser is in the
/// background while there are others.
const HEAVY_CPU: Duration = Duration::from_millis(150);

/// Why a job has no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// For a reason that the caller is given; trying again would not help.
    #[error("refused")]
    Refused(#[source] Refusal),
    /// The page's process died.
    #[error("the page crashed")]
    Crashed,
    /// No page was opened, or the page's process had died, before the job began.
    #[error("there was no page")]
    Stale,
    /// The page does not get through its virtual time, or does what no virtual clock reaches.
    #[error("the page needs real time")]
    NeedsRealTime,
    /// The browser died of the job's page.
    #[error("the page crashed its browser")]
    BrowserCrashed,
    /// The browser died, or answered with an error.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    /// The system has no port for the page.
    #[error("no port for a page's requests")]
    PageProxy(#[source] io::Error),
    /// An empty page does not answer.
    #[error("the browser hangs")]
    Stuck,
    /// The task that opens a page was lost.
    #[error("no page was opened")]
    Opening(#[source] JoinError),
    /// There is no file.
    #[error("the browser's file is empty")]
    NoFile,
}

/// Renders a job with a leased browser. The slot is held until the page is clean or gone.
pub(crate) async fn render(
    job: &RenderJob,
    browser: BrowserLease,
    slot: &Arc<Slot>,
    traffic: &Arc<JobEgress>,
    deadline: Instant,
    clock: Clock,
) -> Result<Bytes, JobError> {
    let late = |_| JobError::Refused(Refusal::Deadline);
    // A page that loads an origin is not used again, so a warm one would be wasted on it.
    let request = PageRequest {
        account: &job.account,
        reuse: matches!(job.source, Source::Html(_)),
        scale_factor: job.viewport.device_scale_factor,
    };
    let taking = PageLease::take(browser, Arc::clone(slot), &request);
    let mut lease = timeout_at(deadline, taking).await.map_err(late)??;
    let (page, browser) = lease.page();
    page.scale_factor = Some(request.scale_factor);
    let mut memory = browser.browser().watch_memory();
    if memory.began_over() {
        browser.recycle();
    }
    let pass = page.proxy.admit(traffic);
    let foreground = (!slot.is_heavy()).then(|| browser.browser().foreground_job());
    let guarded = async {
        tokio::select! {
            biased;
            rendered = run(page, browser, job, traffic, clock, deadline) => rendered,
            () = memory.exceeded() => Err(JobError::Refused(Refusal::PageMemoryExceeded)),
            error = yield_to_others(browser, slot, foreground) => Err(error),
        }
    };
    let rendered = timeout_at(deadline, guarded).await;
    drop(pass);
    page.tainted |= page.proxy.is_used();
    match &rendered {
        Ok(Err(JobError::Stuck)) => browser.kill("a page does not answer"),
        Ok(Err(JobError::Refused(Refusal::PageMemoryExceeded))) if browser.browser().is_over_memory() => {
            browser.kill("it uses too much memory");
        }
        Ok(Ok(rendered)) if !page.tainted && request.reuse => {
            lease.hand_back(job.account.clone(), rendered.is_still);
        }
        _ => {}
    }
    rendered.map_err(late)?.map(|rendered| rendered.file)
}

/// Makes room for others when a job runs for long or takes much CPU time. Never completes.
async fn yield_to_others(browser: &BrowserLease, slot: &Slot, foreground: Option<ForegroundJob>) -> JobError {
    let long = async {
        sleep(LONG_JOB).await;
        slot.mark_long();
    };
    let heavy = async {
        sleep(USAGE_INTERVAL).await;
        drop(foreground);
        let mut cpu = browser.browser().cpu_time();
        loop {
            sleep(USAGE_INTERVAL).await;
            let before = std::mem::replace(&mut cpu, browser.browser().cpu_time());
            if cpu.saturating_sub(before) >= HEAVY_CPU {
                return slot.mark_heavy();
            }
        }
    };
    let lower = async {
        slot.until_shared().await;
        browser.lower_priority();
    };
    if slot.is_heavy() {
        tokio::join!(long, heavy, lower);
    } else {
        tokio::join!(long, async {
            heavy.await;
            lower.await;
        });
    }
    std::future::pending().await
}

/// A file, and what is known of the page that it shows.
struct RenderedPage {
    file: Bytes,
    /// Nothing goes on in the page.
    is_still: bool,
}

async fn run(
    page: &mut Page,
    browser: &BrowserLease,
    job: &RenderJob,
    traffic: &JobEgress,
    clock: Clock,
    deadline: Instant,
) -> Result<RenderedPage, JobError> {
    let job_host = match &job.source {
        Source::Url(url) => url.as_url().host_str(),
        Source::Html(_) => None,
    };
    page.jobs += 1;
    let before = match load::prepare(page, job).await {
        Err(JobError::Crashed | JobError::Cdp(CdpError::PageGone)) if !browser.browser().is_closed() => {
            return Err(JobError::Stale);
        }
        prepared => prepared?,
    };
    let Page { session, events, main_frame, frames, tainted, .. } = page;
    let (handler, mut state) = PageEventHandler::new(session, events, main_frame, tainted, job_host, traffic);
    let wait = Wait {
        until: job.wait_until,
        timeout: job.wait_for_timeout,
        source: &job.source,
        before,
        clock,
        deadline,
        needs_frame: matches!(job.output.format(), OutputFormat::Image(_)),
    };
    let entered_virtual_time = AtomicBool::new(false);
    let steps = async {
        let mut rendering =
            Rendering::new(browser.browser(), session, main_frame, frames.as_mut(), state.clone());
        let loaded = async {
            load::deliver(session, main_frame, &job.source, traffic, &mut state).await?;
            settle::milestone(session, &mut state, job.wait_until).await
        };
        rendering.frames_while_loading(loaded).await?;
        let settled = settle::settle(&mut rendering, wait).await?;
        if let Some(waiting) = settled.waiting {
            browser.waited(waiting);
        }
        let file = capture::capture(&mut rendering, &job.viewport, &job.output, settled.script_ran).await?;
        rendering.release_animations()?;
        entered_virtual_time.store(rendering.is_in_virtual_time(), Ordering::Relaxed);
        let now = rendering.load_state();
        let has_still_markup =
            || matches!(&job.source, Source::Html(html) if !stillness::may_change(html.as_str()));
        let is_still = !settled.script_ran && !now.may_change && now.requests == 0 && has_still_markup();
        Ok(RenderedPage { file, is_still })
    };
    let done = tokio::select! {
        // What ends a page explains better than the step that failed because of it.
        biased;
        error = handler.run() => Err(error),
        file = steps => file,
    };
    page.tainted |= entered_virtual_time.into_inner();
    match done {
        Err(JobError::Cdp(CdpError::PageGone | CdpError::Closed)) => Err(page_gone(browser).await),
        done => done,
    }
}

/// Why a page is gone that was not closed by the farm and whose renderer did not crash.
async fn page_gone(browser: &BrowserLease) -> JobError {
    match browser.browser().crashed().await {
        // It lives: the page has closed itself.
        None => JobError::Refused(Refusal::PageClosed),
        Some(true) => JobError::BrowserCrashed,
        Some(false) => JobError::Cdp(CdpError::Closed),
    }
}
