//! A page that is used again: the fewest commands that render a job on it.
//!
//! Invariant: a page has one job at a time.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use platen_cdp::Connection;

use super::{Job, clock::Clock, tab::Tab};

/// The tabs in which one job at a time is rendered.
pub(super) struct Page {
    connection: Arc<Connection>,
    /// The tab for jobs that wait only for `load`, in real time.
    real_time: Tab,
    /// The tab for the others. A tab in virtual time cannot return to real time.
    virtual_time: Option<(Tab, Option<Clock>)>,
}

impl Page {
    pub(super) async fn open(connection: &Arc<Connection>) -> Result<Self> {
        let real_time = Tab::open(connection).await?;
        Ok(Self { connection: Arc::clone(connection), real_time, virtual_time: None })
    }

    /// Opens a page in place of this one.
    pub(super) async fn replace(self) -> Result<Self> {
        Self::open(&self.connection).await
    }

    /// The file of a job.
    pub(super) async fn render(&mut self, job: &Job) -> Result<Bytes> {
        let wait_ms = if job.wait_until == "networkidle" { 500 } else { 0 } + job.wait_for_timeout;
        if wait_ms == 0 {
            self.real_time.set_size(job.width, job.height).await?;
            self.real_time.load(job).await?;
            return self.real_time.capture(job, None).await;
        }
        let (tab, previous) = match &mut self.virtual_time {
            Some(opened) => opened,
            none => none.insert((Tab::open(&self.connection).await?, None)),
        };
        tab.set_size(job.width, job.height).await?;
        tab.load_blank().await?;
        let mut clock = Clock::stop(tab, previous.take()).await?;
        tab.deliver(job).await?;
        clock.run_until_loaded(tab).await?;
        clock.run(tab, wait_ms).await?;
        let file = tab.capture(job, Some(clock.now())).await?;
        *previous = Some(clock);
        Ok(file)
    }
}
