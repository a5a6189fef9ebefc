//! A browser as an operating-system process.
//!
//! A dedicated thread spawns, awaits and reaps it. That thread must run as long as the process, because the
//! kernel sends the parent-death signal (`PR_SET_PDEATHSIG`) when the *thread* that spawned it ends.
//!
//! Invariant: the process leads its own session and process group. When it exits, the rest of the group is
//! killed and reaped before the profile is removed. The group is never signalled after its leader is reaped,
//! because its id may be reused: the id is cleared, under a lock, before that.

use std::{
    io,
    os::fd::OwnedFd,
    process::{ChildStderr, Command, Stdio},
    sync::Arc,
    thread,
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{Signal, kill, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
    },
    unistd::Pid,
};
use parking_lot::Mutex;
use rustix::process::{getpriority_process, setpriority_process};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{oneshot, watch},
    task::JoinHandle,
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::cgroup;

/// Nice value of browsers, so that the farm and the host, through which every job passes, run before them. With 5, they
/// rendered half as much beside busy programs, and the farm answered no faster.
const NICE: i32 = 2;

/// A running browser process. When dropped, its whole group is killed.
#[derive(Debug)]
pub(super) struct Process {
    group: ProcessGroup,
    /// Process id of the browser process, which is also the id of its group and session.
    pub(super) pid: u32,
    exit: watch::Receiver<Option<Exit>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Ended by a signal such as SIGSEGV, SIGTRAP or SIGABRT.
    Crashed,
    /// Ended by SIGKILL or SIGTERM, or by exiting normally.
    Ended,
}

impl Exit {
    fn of(status: nix::Result<WaitStatus>) -> Self {
        match status {
            Ok(WaitStatus::Signaled(_, signal, _))
                if !matches!(signal, Signal::SIGKILL | Signal::SIGTERM) =>
            {
                Self::Crashed
            }
            _ => Self::Ended,
        }
    }
}

/// A process group; its id is `None` after its leader has exited.
#[derive(Debug, Clone)]
struct ProcessGroup(Arc<Mutex<Option<Pid>>>);

impl ProcessGroup {
    fn kill(&self) {
        if let Some(group) = *self.0.lock() {
            // Fails only if the group has no process any more, or not yet.
            let _ = killpg(group, Signal::SIGKILL);
            // Directly after its start the process does not lead its group yet.
            let _ = kill(group, Signal::SIGKILL);
        }
    }
}

/// Makes the farm the parent of helper processes whose browser has exited, so that it can reap them. The
/// first process of a container may not do so.
pub(super) fn adopt_orphans() {
    if let Err(error) = prctl::set_child_subreaper(true) {
        tracing::warn!(%error, "cannot become a child subreaper; orphans of browsers are left to init");
    }
}

impl Process {
    /// Runs `command`. `token` is dropped after all processes and the profile are removed.
    pub(super) async fn spawn(
        mut command: Command,
        profile: TempDir,
        token: TaskTrackerToken,
    ) -> io::Result<(Self, ChildStderr)> {
        let (report, spawned) = oneshot::channel();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        thread::Builder::new().name("browser".to_owned()).spawn(move || {
            run(command, report);
            remove(profile);
            drop(token);
        })?;
        spawned.await.map_err(|_| io::Error::other("the browser's thread ended early"))?
    }

    pub(super) fn kill(&self) {
        self.group.kill();
    }

    pub(super) async fn exit(&self) -> Exit {
        let mut exit = self.exit.clone();
        // No status is sent if the thread has ended early.
        exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit).unwrap_or(Exit::Ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

type Report = oneshot::Sender<io::Result<(Process, ChildStderr)>>;

fn run(mut command: Command, report: Report) {
    lower_priority();
    let spawned = command.spawn();
    // The command holds the browser's ends of the pipes, which only the browser may keep open.
    drop(command);
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let _ = report.send(Err(error));
            return;
        }
    };
    // Before it has children, which inherit its cgroup.
    let cgroup = cgroup::add_browser(child.id());
    let leader = Pid::from_raw(child.id().cast_signed());
    let group = ProcessGroup(Arc::new(Mutex::new(Some(leader))));
    let (ending, exit) = watch::channel(None);
    let process = Process { group: group.clone(), pid: child.id(), exit };
    let stderr = child.stderr.take().expect("standard error is piped");
    // If the receiver is dropped, the process is dropped, and thereby killed.
    let _ = report.send(Ok((process, stderr)));

    let status = retry(|| waitid(Id::Pid(leader), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT));
    tracing::debug!(pid = %leader, ?status, "browser process exited");
    let mut id = group.0.lock();
    let _ = killpg(leader, Signal::SIGKILL);
    *id = None;
    drop(id);
    ending.send_replace(Some(Exit::of(status)));
    // When a process of the group exits, its children become children of the farm before it can be reaped. So
    // `waitpid` fails only when the group is empty.
    while retry(|| waitpid(Pid::from_raw(-leader.as_raw()), None)).is_ok() {}
    drop(cgroup);
}

/// Gives this thread, and what it starts, the nice value of browsers. It stays higher where the operator has set a higher one for
/// the farm: only root may lower it.
pub(crate) fn lower_priority() {
    if getpriority_process(None).is_ok_and(|nice| nice < NICE)
        && let Err(error) = setpriority_process(None, NICE)
    {
        tracing::warn!(%error, "a process has the priority of the farm");
    }
}

fn retry(mut wait: impl FnMut() -> nix::Result<WaitStatus>) -> nix::Result<WaitStatus> {
    loop {
        match wait() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

fn remove(profile: TempDir) {
    let path = profile.path().to_owned();
    if let Err(error) = profile.close() {
        tracing::warn!(path = %path.display(), %error, "cannot remove a browser's profile");
    }
}

/// Enough for a fatal message and its context.
const MAX_TAIL_BYTES: usize = 4 * 1024;

/// The end of a browser's standard error, which a background task reads.
///
/// Invariant: the pipe is always drained, so that the browser never blocks on it, and at most [`MAX_TAIL_BYTES`] are kept.
#[derive(Debug)]
pub(super) struct StderrTail {
    tail: Arc<Mutex<Vec<u8>>>,
    drain: JoinHandle<()>,
}

impl StderrTail {
    pub(super) fn listen(stderr: ChildStderr) -> io::Result<Self> {
        let mut pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        let tail = Arc::<Mutex<Vec<u8>>>::default();
        let sink = Arc::clone(&tail);
        let drain = tokio::spawn(async move {
            let mut chunk = [0; 1024];
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                let mut tail = sink.lock();
                tail.extend_from_slice(&chunk[..length]);
                let surplus = tail.len().saturating_sub(MAX_TAIL_BYTES);
                tail.drain(..surplus);
            }
        });
        Ok(Self { tail, drain })
    }

    pub(super) fn text(&self) -> String {
        let tail = self.tail.lock();
        String::from_utf8_lossy(&tail).trim().to_owned()
    }

    /// The same as [`StderrTail::text`], after the stream has ended.
    pub(super) async fn into_text(mut self) -> String {
        let _ = tokio::time::timeout(super::EXIT_TIMEOUT, &mut self.drain).await;
        self.text()
    }
}
