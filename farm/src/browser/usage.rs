//! The memory and CPU time of a browser's processes.
//!
//! A browser serves one job at a time, and its idle pages are small (`render/reset.rs`); so what a
//! process of it uses beyond that, it uses for the job. Shared libraries and mapped files do not count as
//! memory: they are the same for every page.

use std::{fs, time::Duration};

/// How often a browser is looked at while a job runs: a page can allocate about 1 GiB a second.
const INTERVAL: Duration = Duration::from_millis(100);
/// Length of a tick of `/proc/<pid>/stat`: `USER_HZ` is 100 on every architecture that Chromium runs on.
const TICK: Duration = Duration::from_millis(10);

/// Completes when a process of `browser` uses more than `max` bytes.
pub(super) async fn memory_exceeded(browser: u32, max: u64) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if processes(browser).any(|process| memory(process).is_some_and(|bytes| bytes > max)) {
            return;
        }
    }
}

/// Whether a process that serves all pages of a browser uses more than `max` bytes.
pub(super) fn is_shared_process_over(browser: u32, max: u64) -> bool {
    processes(browser)
        .filter(|&process| !is_renderer(process))
        .any(|process| memory(process).is_some_and(|bytes| bytes > max))
}

/// CPU time that all living processes of a browser have taken.
pub(super) fn cpu_time(browser: u32) -> Duration {
    processes(browser).filter_map(ticks).fold(Duration::ZERO, |sum, ticks| sum + TICK * ticks)
}

/// A browser process and all below it.
fn processes(browser: u32) -> impl Iterator<Item = u32> {
    let mut left = vec![browser];
    std::iter::from_fn(move || {
        let process = left.pop()?;
        let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        left.extend(list.split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        Some(process)
    })
}

fn is_renderer(process: u32) -> bool {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).any(|argument| argument == b"--type=renderer")
}

/// Bytes of memory that a process has for itself or shares with processes of its own browser; none when
/// it has ended.
fn memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kibibytes = |field: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    Some((kibibytes("RssAnon:")? + kibibytes("RssShmem:")?) * 1024)
}

/// User and system time of a process in ticks; none when it has ended.
fn ticks(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_this_process_is_known() {
        let own = std::process::id();
        let before = memory(own).unwrap();
        let block = vec![1_u8; 64 * 1024 * 1024];
        assert!(memory(own).unwrap() >= before + 60 * 1024 * 1024);
        assert!(block.iter().all(|byte| *byte == 1));
        assert_eq!((memory(u32::MAX), ticks(u32::MAX)), (None, None));
        let start = cpu_time(own);
        while cpu_time(own) < start + TICK * 2 {
            std::hint::black_box(block.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        }
    }
}
