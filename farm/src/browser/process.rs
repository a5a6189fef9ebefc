//! One browser as an operating-system process.
//!
//! A thread of its own spawns it, waits for it and reaps it. The thread lives exactly as long as
//! the process because the kernel's parent-death signal, which takes the browser down with a
//! killed farm, is sent when the *thread* that spawned it ends.
//!
//! Invariant: the process leads its own session and group, and whatever is left of the group when the leader
//! ends is killed and reaped before the home directory is removed. The group's number is
//! signalled only while it is certainly still ours: it is forgotten, under its lock, before the
//! leader is reaped.

use std::{
    io,
    process::{ChildStderr, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
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
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A running browser process; killed with its whole group when dropped.
#[derive(Debug)]
pub(super) struct Process {
    group: Group,
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
}

/// How a browser process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// By a fault of its own: a signal such as SIGSEGV, SIGTRAP or SIGABRT.
    Crashed,
    /// It was killed from outside, or ended by itself.
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

/// The group's number for as long as it is ours.
#[derive(Debug, Clone)]
pub(super) struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    #[cfg(test)]
    pub(super) fn led_by(leader: u32) -> Self {
        Self(Arc::new(Mutex::new(Some(Pid::from_raw(leader.cast_signed())))))
    }

    /// Stops all its processes.
    pub(super) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets processes that were stopped go on.
    pub(super) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // It fails only when no process is left in the group, or none is there yet.
            let _ = killpg(group, signal);
        }
    }

    fn kill(&self) {
        if let Some(group) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // It fails only when nobody is left in the group.
            let _ = killpg(group, Signal::SIGKILL);
            // A moment after its start it does not lead its group yet.
            let _ = kill(group, Signal::SIGKILL);
        }
    }
}

/// Lets the farm reap what its browsers leave behind: their helpers become its children when the
/// browser dies first, instead of zombies of a container's first process, which may not reap.
pub(super) fn adopt_orphans() {
    if let Err(error) = prctl::set_child_subreaper(true) {
        tracing::warn!(%error, "processes that a killed browser leaves are reaped by the system");
    }
}

impl Process {
    /// Runs `command`. `alive` is held until the process and its home are gone.
    pub(super) async fn spawn(
        mut command: Command,
        home: TempDir,
        alive: TaskTrackerToken,
    ) -> io::Result<(Self, ChildStderr)> {
        let (report, spawned) = oneshot::channel();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        thread::Builder::new().name("browser".to_owned()).spawn(move || {
            run(command, report);
            remove(home);
            drop(alive);
        })?;
        spawned.await.map_err(|_| io::Error::other("the browser's thread ended early"))?
    }

    /// Kills the whole group at once.
    pub(super) fn kill(&self) {
        self.group.kill();
    }

    /// Its process group.
    pub(super) fn group(&self) -> Group {
        self.group.clone()
    }

    /// The process id of the browser process, which is also that of its group.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, once it has.
    pub(super) async fn exit(&self) -> Exit {
        let mut exit = self.exit.clone();
        // Without its thread there is no report.
        exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit).unwrap_or(Exit::Ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

type Report = oneshot::Sender<io::Result<(Process, ChildStderr)>>;

/// The life of one process, start to end.
fn run(mut command: Command, report: Report) {
    let spawned = command.spawn();
    // It holds the browser's ends of the pipes, which must be open in the browser alone.
    drop(command);
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let _ = report.send(Err(error));
            return;
        }
    };
    let leader = Pid::from_raw(child.id().cast_signed());
    let group = Group(Arc::new(Mutex::new(Some(leader))));
    let (ending, exit) = watch::channel(None);
    let process = Process { group: group.clone(), pid: child.id(), exit };
    let stderr = child.stderr.take().expect("standard error is piped");
    // If nobody waits for it any more, the process is dropped and thereby killed.
    let _ = report.send(Ok((process, stderr)));

    let status = retry(|| waitid(Id::Pid(leader), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT));
    tracing::debug!(pid = %leader, ?status, "a browser process ended");
    let mut ours = group.0.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = killpg(leader, Signal::SIGKILL);
    *ours = None;
    drop(ours);
    ending.send_replace(Some(Exit::of(status)));
    // A member of the group becomes our child when its own parent has died, and can be reaped
    // only after it has handed us its children: the group is empty when there is none left.
    while retry(|| waitpid(Pid::from_raw(-leader.as_raw()), None)).is_ok() {}
}

fn retry(mut wait: impl FnMut() -> nix::Result<WaitStatus>) -> nix::Result<WaitStatus> {
    loop {
        match wait() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

fn remove(home: TempDir) {
    let path = home.path().to_owned();
    if let Err(error) = home.close() {
        tracing::warn!(path = %path.display(), %error, "a browser's home cannot be removed");
    }
}
