//! Background browsers: those with heavy jobs, and those that are starting. They are stopped (`SIGSTOP`,
//! `SIGCONT`) while other jobs start on a machine that is short of CPUs.
//!
//! A low priority is not enough: it limits a process's share of the CPU time, but at each wake-up a thread
//! may still wait for a kernel tick (4 ms at 250 Hz), and a job wakes dozens of threads in sequence.
//!
//! Invariant: a browser is stopped for at most [`MAX_PAUSE`], and then runs for at least
//! [`MIN_RUN_FACTOR`] times as long. It is resumed when it leaves the background, and when the farm is killed.

use std::{collections::HashMap, fs, io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{process::ProcessGroup, resumer::Resumer};
use crate::metrics::Metrics;

/// Longest time for which a browser is stopped. To its page a pause looks like a slow machine.
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// A browser runs at least this many times as long as it was stopped, so that it keeps at least three
/// quarters of the CPU time that its priority gives it.
const MIN_RUN_FACTOR: u32 = 3;

/// The background browsers of a farm, and the number of foreground jobs.
#[derive(Debug, Clone)]
pub(super) struct Background(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    foreground: watch::Sender<usize>,
    state: Mutex<State>,
    is_short_of_cpus: fn() -> bool,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    browsers: HashMap<u64, ProcessGroup>,
    phase: Phase,
    /// Started before the first pause.
    resumer: Option<Resumer>,
}

impl State {
    /// Stops all browsers, unless they could not be resumed if the farm were killed.
    fn stop(&mut self) -> io::Result<()> {
        let resumer = match &mut self.resumer {
            Some(resumer) => resumer,
            missing => missing.insert(Resumer::start()?),
        };
        if let Err(error) = resumer.set_stopped(self.browsers.values().filter_map(ProcessGroup::id)) {
            self.resumer = None;
            return Err(error);
        }
        self.phase = Phase::Stopped;
        self.browsers.values().for_each(ProcessGroup::stop);
        Ok(())
    }
}

/// What the task that stops and resumes the browsers does.
#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The task does not run.
    #[default]
    Idle,
    /// The browsers are stopped.
    Stopped,
    /// The browsers run until they may be stopped again.
    Running,
}

impl Background {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self::with(is_short_of_cpus, metrics)
    }

    fn with(is_short_of_cpus: fn() -> bool, metrics: Arc<Metrics>) -> Self {
        Self(Arc::new(Inner {
            foreground: watch::channel(0).0,
            state: Mutex::default(),
            is_short_of_cpus,
            metrics,
        }))
    }

    /// Ends the process that would resume browsers. There are none any more.
    pub(super) fn close(&self) {
        let resumer = self.0.state.lock().resumer.take();
        drop(resumer);
    }

    /// Puts a browser in the background until the guard is dropped.
    pub(super) fn add(&self, group: ProcessGroup) -> BackgroundBrowser {
        let mut state = self.0.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.browsers.insert(id, group);
        if state.phase == Phase::Stopped {
            warn_if_not_stopped(state.stop());
        }
        self.pause_if_needed(&mut state);
        BackgroundBrowser { background: self.clone(), id }
    }

    /// Adds a foreground job until the guard is dropped.
    pub(super) fn foreground_job(&self) -> ForegroundJob {
        self.0.foreground.send_modify(|jobs| *jobs += 1);
        self.pause_if_needed(&mut self.0.state.lock());
        ForegroundJob(self.clone())
    }

    fn is_pause_needed(&self, state: &State) -> bool {
        !state.browsers.is_empty() && *self.0.foreground.borrow() > 0 && (self.0.is_short_of_cpus)()
    }

    fn pause_if_needed(&self, state: &mut State) {
        if state.phase == Phase::Idle && self.is_pause_needed(state) {
            state.phase = Phase::Running;
            tokio::spawn(self.clone().pause());
        }
    }

    async fn pause(self) {
        loop {
            let pause = {
                let mut state = self.0.state.lock();
                if !self.is_pause_needed(&state) {
                    state.phase = Phase::Idle;
                    return;
                }
                let stopped = state.stop();
                if stopped.is_err() {
                    state.phase = Phase::Idle;
                    drop(state);
                    warn_if_not_stopped(stopped);
                    return;
                }
                Pause(&self)
            };
            self.0.metrics.background_pauses.inc();
            let since = Instant::now();
            let _ = timeout(MAX_PAUSE, self.0.foreground.subscribe().wait_for(|jobs| *jobs == 0)).await;
            drop(pause);
            sleep(since.elapsed() * MIN_RUN_FACTOR).await;
        }
    }
}

fn warn_if_not_stopped(stopped: io::Result<()>) {
    if let Err(error) = stopped {
        tracing::warn!(%error, "cannot start `setsid sh`; background browsers are not paused");
    }
}

/// Resumes the background browsers when dropped.
struct Pause<'a>(&'a Background);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock();
        state.phase = Phase::Running;
        state.browsers.values().for_each(ProcessGroup::resume);
        if let Some(resumer) = &mut state.resumer {
            // If it has ended, the next pause finds that out.
            let _ = resumer.set_stopped(std::iter::empty());
        }
    }
}

/// Keeps a browser in the background until it is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundBrowser {
    background: Background,
    id: u64,
}

impl Drop for BackgroundBrowser {
    fn drop(&mut self) {
        let mut state = self.background.0.state.lock();
        let group = state.browsers.remove(&self.id);
        if let Some(group) = group.filter(|_| state.phase == Phase::Stopped) {
            group.resume();
        }
    }
}

/// Counts a job as in the foreground until it is dropped.
#[derive(Debug)]
pub(crate) struct ForegroundJob(Background);

impl Drop for ForegroundJob {
    fn drop(&mut self) {
        self.0.0.foreground.send_modify(|jobs| *jobs -= 1);
    }
}

/// Whether more threads are ready to run than the machine has CPUs; false if `/proc/stat` cannot be read.
fn is_short_of_cpus() -> bool {
    fs::read_to_string("/proc/stat").is_ok_and(|stat| has_more_threads_than_cpus(&stat))
}

/// Parses `/proc/stat`, which has one line for all CPUs and one for each CPU (`proc_stat(5)`).
fn has_more_threads_than_cpus(stat: &str) -> bool {
    let cpus = stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1);
    let ready = stat.lines().find_map(|line| line.strip_prefix("procs_running ")?.trim().parse().ok());
    ready.is_some_and(|ready: usize| ready > cpus)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Child, Command},
    };

    use super::*;

    fn background(is_short_of_cpus: fn() -> bool) -> Background {
        Background::with(is_short_of_cpus, Arc::new(Metrics::new()))
    }

    /// A process that leads a group, killed when dropped.
    struct Leader(Child);

    impl Leader {
        fn start() -> (Self, ProcessGroup) {
            let child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
            let group = ProcessGroup::led_by(child.id());
            (Self(child), group)
        }

        async fn wait_until_stopped(&self, stopped: bool) {
            let stat = format!("/proc/{}/stat", self.0.id());
            while fs::read_to_string(&stat).unwrap().contains(") T ") != stopped {
                sleep(Duration::from_millis(1)).await;
            }
        }
    }

    impl Drop for Leader {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[tokio::test]
    async fn a_background_browser_is_stopped_while_a_job_starts() {
        let all = background(|| true);
        let (first, group) = Leader::start();
        let _first = all.add(group);
        let job = all.foreground_job();
        first.wait_until_stopped(true).await;
        let (second, group) = Leader::start();
        let guard = all.add(group);
        second.wait_until_stopped(true).await;
        drop(guard);
        second.wait_until_stopped(false).await;
        drop(job);
        first.wait_until_stopped(false).await;
    }

    #[tokio::test]
    async fn it_runs_between_pauses_while_jobs_last() {
        let all = background(|| true);
        let (leader, group) = Leader::start();
        let _job = all.foreground_job();
        let _guard = all.add(group);
        for _ in 0..2 {
            leader.wait_until_stopped(true).await;
            leader.wait_until_stopped(false).await;
        }
    }

    #[tokio::test]
    async fn it_runs_if_cpus_are_free_or_no_job_is_in_the_foreground() {
        let (leader, group) = Leader::start();
        let idle = background(|| false);
        let _job = idle.foreground_job();
        let _guards = (idle.add(group.clone()), background(|| true).add(group));
        tokio::task::yield_now().await;
        assert_eq!(idle.0.state.lock().phase, Phase::Idle);
        leader.wait_until_stopped(false).await;
    }

    #[test]
    fn threads_are_compared_with_cpus() {
        let stat =
            |ready| format!("cpu  1 2\ncpu0 1\ncpu1 1\nintr 5\nprocs_running {ready}\nprocs_blocked 0\n");
        assert!(has_more_threads_than_cpus(&stat(3)) && !has_more_threads_than_cpus(&stat(2)));
        assert!(!has_more_threads_than_cpus("cpu 1\n") && !has_more_threads_than_cpus(""));
        assert!(fs::read_to_string("/proc/stat").unwrap().contains("\nprocs_running "));
    }
}
