//! A busy machine: one endless loop for each core, in processes of their own.
//!
//! Invariant: the loops end with the value, and with this program.

use std::{process::Command, thread};

use anyhow::Result;
use nix::sys::signal::Signal;
use platen_tests::process::Process;

/// Loops on all cores.
pub(super) struct BusyLoops {
    _loops: Vec<Process>,
}

impl BusyLoops {
    pub(super) fn start() -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let loops = (0..cores).map(|_| Process::start("a busy loop", &command, Signal::SIGKILL));
        Ok(Self { _loops: loops.collect::<Result<_>>()? })
    }
}
