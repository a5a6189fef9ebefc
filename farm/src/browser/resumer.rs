//! A process that resumes stopped browsers if the farm is killed.
//!
//! The kernel then kills only the first process of each browser (`PR_SET_PDEATHSIG`). The others end when they notice
//! that it has gone, which stopped processes never do.

use std::{
    io::{self, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
};

/// Each line has the process groups that are stopped; the end of the input is that of the farm. A signal for the farm
/// must not end this process: `setsid`, and `trap` for a service manager that signals all processes of a service.
const PROGRAM: &str = "trap '' HUP INT TERM; stopped=; while read -r line; do stopped=$line; done; \
    for group in $stopped; do kill -s CONT -- \"-$group\"; done";

/// The running process. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Resumer {
    process: Child,
    /// `Some` until it is dropped.
    input: Option<ChildStdin>,
}

impl Resumer {
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", PROGRAM]).current_dir("/");
        // The environment of the farm may contain secrets.
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let input = process.stdin.take();
        Ok(Self { process, input })
    }

    /// Tells it which groups are stopped. Must be called before they are, because the farm can be killed at any time;
    /// to resume a group that runs has no effect.
    pub(super) fn set_stopped(&mut self, groups: impl Iterator<Item = i32>) -> io::Result<()> {
        let groups: Vec<String> = groups.map(|group| group.to_string()).collect();
        let line = groups.join(" ") + "\n";
        self.input.as_mut().map_or(Ok(()), |input| input.write_all(line.as_bytes()))
    }
}

impl Drop for Resumer {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
