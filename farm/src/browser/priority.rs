//! The CPU priority of browsers, below that of the farm and the host.
//!
//! Each browser runs in a session of its own. Where the kernel groups processes by session
//! (`sched_autogroup_enabled`, sched(7)), a browser with hundreds of busy threads gets no more CPU than
//! one with a single thread, and the nice value of the group decides between browsers. Elsewhere the nice
//! value of every thread is set.

use std::{
    fs,
    process::{Command, Stdio},
};

/// Nice value of a browser: under load it gets two thirds of what a process of the farm gets.
pub(super) const NORMAL: i32 = 2;
/// Nice value of a browser whose job runs for long beside others: a tenth of what these get.
pub(super) const LOW: i32 = 12;

/// Sets the nice value of a browser, which leads a session; false if that could not be tried. Raising the
/// priority again takes root.
pub(super) fn set(leader: u32, nice: i32) -> bool {
    let groups = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    if groups.is_ok_and(|enabled| enabled.trim() == "1")
        && fs::write(format!("/proc/{leader}/autogroup"), nice.to_string()).is_ok()
    {
        return true;
    }
    let mut command = Command::new("renice");
    command.args(["-n", &nice.to_string(), "-g", &leader.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(|mut child| {
        // It ends within milliseconds; it is waited for so that none is left as a zombie.
        std::thread::spawn(move || child.wait());
        true
    })
}
