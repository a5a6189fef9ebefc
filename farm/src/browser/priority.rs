//! The CPU priority of browsers, which is lower than that of the farm and the host.
//!
//! Each browser runs in its own session. Where the kernel groups processes by session (autogroup,
//! sched(7)), a browser with hundreds of busy threads gets no more CPU than one with a single thread, and
//! the nice value of the group decides between browsers. Elsewhere, such as in a container with a CPU
//! cgroup, the nice value of each thread does.

use std::fs;

use rustix::process::{Pid, setpriority_pgrp};

/// Nice value of a browser: under load it gets two thirds of the CPU time of a process of the farm.
pub(super) const NORMAL: i32 = 2;
/// Nice value of a browser with a heavy job beside other jobs: it gets a tenth of their CPU time.
pub(super) const LOW: i32 = 12;

/// Sets the nice value of all threads of a browser and of its session's group. False if the kernel refused:
/// raising the priority again needs root.
pub(super) fn set(leader: u32, nice: i32) -> bool {
    set_for_session(leader, nice);
    let group = Pid::from_raw(leader.cast_signed());
    group.is_some_and(|group| setpriority_pgrp(Some(group), nice).is_ok())
}

/// Sets the nice value of a session's group, if the kernel has autogroup.
pub(super) fn set_for_session(leader: u32, nice: i32) {
    let _ = fs::write(format!("/proc/{leader}/autogroup"), nice.to_string());
}
