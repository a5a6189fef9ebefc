//! Load on the machine.

use std::process::{Child, Command, Stdio};

/// Processes that keep every core busy, ended when dropped.
pub(crate) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    pub(crate) fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let one = || {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..2 * cores).map(|_| one()).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
