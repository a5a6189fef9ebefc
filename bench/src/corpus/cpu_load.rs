//! CPU load: one process with an endless loop per core.
//!
//! Invariant: the processes stop when the value is dropped and when this program exits.

use std::{process::Command, thread};

use anyhow::Result;
use nix::sys::signal::Signal;
use platen_tests::process::Process;

/// Running loops.
pub(super) struct CpuLoad {
    _loops: Vec<Process>,
}

impl CpuLoad {
    pub(super) fn start() -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let loops = (0..cores).map(|_| Process::start("a busy loop", &command, Signal::SIGKILL));
        Ok(Self { _loops: loops.collect::<Result<_>>()? })
    }
}
