//! What a process has used, as Linux accounts it.
//!
//! Invariant: reads only.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};

/// Clock ticks a second in `/proc`: 100 on every Linux that Platen runs on (`USER_HZ`).
const TICKS_A_SECOND: u32 = 100;

/// CPU time of a process with all its threads, user and system.
///
/// # Errors
/// When the process is gone.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    ticks(pid, &[USER, SYSTEM])
}

/// The same, and that of every child it has reaped, and of theirs.
///
/// # Errors
/// When the process is gone.
pub(crate) fn cpu_with_reaped(pid: u32) -> Result<Duration> {
    ticks(pid, &[USER, SYSTEM, REAPED_USER, REAPED_SYSTEM])
}

/// Places in `/proc/PID/stat`, counted from the first field after the name.
const USER: usize = 11;
const SYSTEM: usize = 12;
const REAPED_USER: usize = 13;
const REAPED_SYSTEM: usize = 14;

fn ticks(pid: u32, places: &[usize]) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; fields are counted after it.
    let fields: Vec<&str> = stat.rsplit_once(')').context("a name")?.1.split_whitespace().collect();
    let field =
        |place: &usize| fields.get(*place).and_then(|text| text.parse::<u32>().ok()).context("a number");
    let ticks = places.iter().map(field).sum::<Result<u32>>()?;
    Ok(Duration::from_secs(1) / TICKS_A_SECOND * ticks)
}
