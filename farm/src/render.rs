//! The way of one job through a browser: `load → settle → capture`, on a page it has for itself.
//!
//! Invariant: nothing but the file leaves the page; afterwards the page is thrown away, or cleaned
//! and kept for a job of the same account. Left to others: a slot and a browser for it (admission, pool), trying again, the deadline of a job
//! that has no page yet (farm).

mod attendant;
mod capture;
mod lease;
mod load;
mod pump;
mod reset;
mod settle;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use platen_shared::{
    job::{RenderJob, Source},
    refusal::Refusal,
};
use tokio::{
    task::JoinError,
    time::{Instant, timeout_at},
};

use self::{attendant::Attendant, lease::Lease, pump::Pump, settle::Patience};
use crate::{
    admission::Slot,
    cdp::{BinaryError, CdpError},
    egress::Traffic,
    page::Page,
    pool::Loan,
};

/// Why a job has no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// For a reason the caller is told; trying again would not help.
    #[error("refused")]
    Refused(#[source] Refusal),
    /// The page's process died.
    #[error("the page crashed")]
    Crashed,
    /// The page's process had died before the job began.
    #[error("the page was dead")]
    Stale,
    /// The browser died, or said no.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    /// The system gives the page no port.
    #[error("no port for a page's requests")]
    Gate(#[source] io::Error),
    /// The browser opens no page, or an empty one does not answer.
    #[error("the browser hangs")]
    Stuck,
    /// A neighbour keeps the browser from drawing.
    #[error("another page holds up the browser's frames")]
    HeldUp,
    /// The task that opens a page was lost.
    #[error("no page was opened")]
    Opening(#[source] JoinError),
    /// The file is not what it should be.
    #[error("the browser's file cannot be read")]
    File(#[source] BinaryError),
    /// There is no file.
    #[error("the browser's file is empty")]
    NoFile,
}

/// Renders a job with a borrowed browser. The slot is held until the page is clean or gone.
pub(crate) async fn render(
    job: &RenderJob,
    loan: Loan,
    slot: Arc<Slot>,
    traffic: &Arc<Traffic>,
    deadline: Instant,
) -> Result<Bytes, JobError> {
    let late = |_| JobError::Refused(Refusal::Deadline);
    // A page that goes to an origin is not used again, so it had better not be a warm one.
    let reuse = matches!(job.source, Source::Html(_));
    let taking = Lease::take(loan, slot, &job.account, reuse);
    let mut lease = timeout_at(deadline, taking).await.map_err(late)??;
    let (page, loan) = lease.page();
    let pass = page.gate.admit(traffic);
    let rendered = timeout_at(deadline, run(page, loan, job, traffic)).await;
    drop(pass);
    page.touched |= page.gate.is_used();
    match &rendered {
        // It may be the browser's fault, and a fresh one costs less than finding out.
        Err(_) => loan.retire(),
        Ok(Err(JobError::HeldUp)) => loan.shun(),
        Ok(Err(JobError::Stuck)) => loan.condemn("a page does not answer"),
        Ok(Err(_)) => {}
        Ok(Ok(_)) if page.touched || !reuse => {}
        Ok(Ok(_)) => lease.hand_back(job.account.clone()),
    }
    rendered.map_err(late)?
}

impl From<BinaryError> for JobError {
    fn from(error: BinaryError) -> Self {
        match error {
            BinaryError::Cdp(error) => Self::Cdp(error),
            error @ BinaryError::Base64(_) => Self::File(error),
        }
    }
}

async fn run(page: &mut Page, loan: &Loan, job: &RenderJob, traffic: &Traffic) -> Result<Bytes, JobError> {
    let job_host = match &job.source {
        Source::Url(url) => url.as_url().host_str(),
        Source::Html(_) => None,
    };
    page.jobs += 1;
    let Page { session, events, main_frame, frames, gone, clock, touched, .. } = page;
    let (attendant, mut progress) = Attendant::new(session, events, main_frame, touched, job_host, traffic);
    let mut pump = Pump::new(session, main_frame, frames.as_ref(), gone, clock, progress.clone());
    let patience = Patience { milestone: job.wait_until, wait: job.wait_for_timeout };
    let begun = AtomicBool::new(false);
    let steps = async {
        load::prepare(session, job).await?;
        pump.catch_up().await?;
        begun.store(true, Ordering::Relaxed);
        let loaded = async {
            load::deliver(session, main_frame, &job.source, traffic, &mut progress).await?;
            settle::event(&mut progress, job.wait_until).await;
            Ok(())
        };
        pump.during(loaded).await?;
        if let Some(waiting) = settle::settle(&mut progress, &mut pump, patience).await? {
            loan.waited(waiting);
        }
        capture::capture(session, &mut pump, &job.viewport, &job.output).await
    };
    let done = tokio::select! {
        // What ends a page explains better than the step that failed because of it.
        biased;
        error = attendant.attend() => Err(error),
        file = steps => file,
    };
    let done = match done {
        Err(JobError::Cdp(CdpError::PageGone)) if !loan.browser().is_closed() => Err(JobError::Crashed),
        done => done,
    };
    match done {
        // It died while it waited for a job.
        Err(JobError::Crashed) if !begun.load(Ordering::Relaxed) && !loan.browser().is_closed() => {
            Err(JobError::Stale)
        }
        done => done,
    }
}
