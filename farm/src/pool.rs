//! The browsers, and the jobs that wait for one: a fixed number of slots, in each of which a task keeps one browser
//! running, and as many further browsers that are started while jobs wait and long ones run.
//!
//! Invariant: a browser has one job at a time, so frames, scripts and crashes of a page cannot affect another job. A
//! browser that exits is replaced. After its number of jobs a browser stays in its slot until its successor is ready,
//! and ends with its last job.

mod idle_pages;
mod pooled_browser;
mod queue;
mod running;
mod state;
mod supervisor;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;

pub(crate) use self::{
    pooled_browser::PageRequest,
    queue::{can_end_by, has_time},
};
use self::{pooled_browser::PooledBrowser, queue::JobQueue, supervisor::Supervisor};
use crate::{
    Config,
    browser::Launcher,
    error::LaunchError,
    metrics::{Metrics, PoolState},
};

/// A browser that one job has until this is dropped.
pub(crate) type Lease = queue::Lease<PooledBrowser>;

/// The browsers of a farm.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Gives browsers to jobs.
    pub(crate) queue: JobQueue<PooledBrowser>,
    supervisor: Arc<Supervisor>,
    /// Aborted when the pool is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Pool {
    /// Starts the browsers and returns when the first is ready.
    ///
    /// # Errors
    /// The error of one start, if all have failed.
    pub(crate) async fn start(
        launcher: Launcher,
        config: Arc<Config>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, LaunchError> {
        let browsers = config.browser_count().get();
        let supervisor = Arc::new(Supervisor::new(launcher, config, metrics));
        let mut tasks = JoinSet::new();
        for slot in 0..browsers {
            tasks.spawn(Arc::clone(&supervisor).supervise(slot));
            tasks.spawn(Arc::clone(&supervisor).supervise_extra());
        }
        let queue = supervisor.queue.clone();
        let pool = Self { queue, supervisor, tasks: Mutex::new(tasks) };
        match pool.queue.first().await {
            Ok(first) => {
                let begin_frame_control = first.browser.has_begin_frame_control;
                tracing::info!(
                    product = first.browser.product,
                    begin_frame_control,
                    "first browser is ready"
                );
                Ok(pool)
            }
            Err(error) => {
                pool.close().await;
                Err(error)
            }
        }
    }

    /// What the metrics say about the browsers that run.
    pub(crate) fn state(&self) -> PoolState {
        self.supervisor.state()
    }

    /// Ends all browsers, and completes when their processes and profiles are removed.
    pub(crate) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
        self.supervisor.close().await;
    }
}
