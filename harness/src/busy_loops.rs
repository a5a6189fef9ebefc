//! CPU load on the machine.

use std::{process::Command, thread};

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::process::Process;

/// Processes that keep every core busy until the value is dropped.
#[derive(Debug)]
pub struct BusyLoops(#[expect(dead_code, reason = "held until dropped")] Vec<Process>);

impl BusyLoops {
    /// Starts an endless loop for each core. Browsers, which have a lower priority, get a part of the time only.
    pub fn start() -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let loops = (0..cores).map(|_| Process::start("a busy loop", &command, Signal::SIGKILL));
        Ok(Self(loops.collect::<Result<_>>()?))
    }
}
