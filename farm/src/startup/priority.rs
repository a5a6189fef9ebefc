//! The priority of the programs, which is higher than that of their browsers.

use std::fs;

use nix::unistd::{getpid, getsid};
use rustix::process::{getpriority_process, setpriority_process};

use super::cgroup;

/// Nice value of the programs where the kernel allows it: as root, or with `CAP_SYS_NICE`.
const NICE: i32 = -10;

/// Raises the priority of this thread, and of the threads that it starts afterwards, if the kernel allows it. To be
/// called before the runtime is started. A nice value that the operator has set is kept.
pub fn raise_priority() {
    cgroup::separate_browsers();
    if getpriority_process(None).is_ok_and(|nice| nice != 0) {
        return;
    }
    if let Err(error) = setpriority_process(None, NICE) {
        tracing::debug!(%error, "no permission for a higher priority; browsers get a lower one");
        return;
    }
    // Where the kernel groups processes by session (autogroup, sched(7)), the nice value of the group decides. The
    // group is changed only if the session consists of this program and what it starts, as that of a service does.
    if is_session_leader() {
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
}

/// A session whose leader is outside this process namespace has the id 0 here, which rustix's `getsid` panics on.
fn is_session_leader() -> bool {
    getsid(None).is_ok_and(|session| session == getpid())
}
