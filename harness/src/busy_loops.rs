//! CPU load on the machine.

use std::{process::Command, thread};

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::process::Process;

/// Processes that keep every core busy until the value is dropped.
#[derive(Debug)]
pub struct BusyLoops(#[expect(dead_code, reason = "held until dropped")] Vec<Process>);

impl BusyLoops {
    /// Starts `per_core` endless loops for each core.
    pub fn start(per_core: usize) -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let loops = (0..per_core * cores).map(|_| Process::start("a busy loop", &command, Signal::SIGKILL));
        Ok(Self(loops.collect::<Result<_>>()?))
    }
}
