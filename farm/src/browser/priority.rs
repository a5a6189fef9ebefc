//! The CPU priority of browsers, below that of the farm and the host.
//!
//! Each browser runs in a session of its own. Where the kernel groups processes by session (autogroup,
//! sched(7)), a browser with hundreds of busy threads gets no more CPU than one with a single thread, and
//! the nice value of the group decides between browsers. Elsewhere, such as in a container with a CPU
//! cgroup, the nice value of each thread does.

use std::{
    fs,
    process::{Command, Stdio},
};

/// Nice value of a browser: under load it gets two thirds of what a process of the farm gets.
pub(super) const NORMAL: i32 = 2;
/// Nice value of a browser whose job runs for long beside others: a tenth of what these get.
pub(super) const LOW: i32 = 12;

/// Sets the nice value of a browser, which leads a session: of every thread of it, and of its group. False if
/// that could not be started. Raising the priority again takes root.
pub(super) fn set(leader: u32, nice: i32) -> bool {
    set_for_session(leader, nice);
    let mut command = Command::new("renice");
    command.args(["-n", &nice.to_string(), "-g", &leader.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(|mut child| {
        // It ends within milliseconds; it is waited for so that none is left as a zombie.
        std::thread::spawn(move || child.wait());
        true
    })
}

/// Sets the nice value of a session's group, where there is one.
pub(super) fn set_for_session(leader: u32, nice: i32) {
    let _ = fs::write(format!("/proc/{leader}/autogroup"), nice.to_string());
}
