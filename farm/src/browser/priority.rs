//! The CPU priority of browsers, below that of the farm and the host.

use std::process::{Command, Stdio};

/// Nice value of a browser: under load it gets two thirds of what a process of the farm gets.
pub(super) const NORMAL: i32 = 2;
/// Nice value of a browser whose job runs for long beside others: a fifth of what these get.
pub(super) const LOW: i32 = 9;

/// Sets the nice value of every thread in a process group; false if it could not be started. Raising the
/// priority again takes root.
pub(super) fn set(group: u32, nice: i32) -> bool {
    let mut command = Command::new("renice");
    command.args(["-n", &nice.to_string(), "-g", &group.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(|mut child| {
        // It ends within milliseconds; it is waited for so that none is left as a zombie.
        std::thread::spawn(move || child.wait());
        true
    })
}
