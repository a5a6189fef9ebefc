//! The memory of a browser's processes.
//!
//! A browser serves one job at a time, and its idle pages are small (`render/reset.rs`); so a process of
//! it that uses more than one page may use does so for the job. Shared libraries and mapped files do not
//! count: they are the same for every page.

use std::{fs, time::Duration};

/// How often a browser is looked at while a job runs: a page can allocate about 1 GiB a second.
const INTERVAL: Duration = Duration::from_millis(100);

/// Completes when a process below `browser`, or that process itself, uses more than `max` bytes.
pub(super) async fn exceeded(browser: u32, max: u64) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let mut processes = vec![browser];
        while let Some(process) = processes.pop() {
            if used(process).is_some_and(|bytes| bytes > max) {
                return;
            }
            processes.extend(children(process));
        }
    }
}

/// Whether a process that serves all pages of a browser uses more than `max` bytes.
pub(super) fn is_shared_process_over(browser: u32, max: u64) -> bool {
    std::iter::once(browser)
        .chain(children(browser))
        .filter(|&process| !is_renderer(process))
        .any(|process| used(process).is_some_and(|bytes| bytes > max))
}

fn is_renderer(process: u32) -> bool {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).any(|argument| argument == b"--type=renderer")
}

fn children(process: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Bytes of memory that a process has for itself or shares with processes of its own browser; none when
/// it has ended.
fn used(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kibibytes = |field: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    Some((kibibytes("RssAnon:")? + kibibytes("RssShmem:")?) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_known() {
        let own = std::process::id();
        let before = used(own).unwrap();
        let block = vec![1_u8; 64 * 1024 * 1024];
        assert!(used(own).unwrap() >= before + 60 * 1024 * 1024);
        assert!(block.iter().all(|byte| *byte == 1));
        assert_eq!(used(u32::MAX), None);
    }
}
