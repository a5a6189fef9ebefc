//! The memory and CPU time of a browser's processes.
//!
//! A browser serves one job at a time, so what a process of it comes to use during the job, it uses for
//! the job. What it used before does not count: the processes that serve all pages may not have given
//! back what an earlier job took, and an earlier page's renderer may still be ending. Nor do shared
//! libraries and mapped files: they are the same for every page.

use std::{collections::HashMap, fs, time::Duration};

/// How often a browser is looked at while a job runs: a page can allocate about 1 GiB a second.
const INTERVAL: Duration = Duration::from_millis(100);
/// Length of a tick of `/proc/<pid>/stat`: `USER_HZ` is 100 on every architecture that Chromium runs on.
const TICK: Duration = Duration::from_millis(10);

/// The memory of a browser's processes since a job began.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    browser: u32,
    max: u64,
    /// What each process used before the job.
    before: HashMap<u32, u64>,
}

impl MemoryWatch {
    /// Begins with a job, which may use `max` bytes in any process.
    pub(super) fn new(browser: u32, max: u64) -> Self {
        let mut before = HashMap::new();
        let mut left = vec![browser];
        while let Some(process) = left.pop() {
            before.extend(used(process).map(|bytes| (process, bytes)));
            // Those of the main thread are nearly all, and cost little to find.
            left.extend(children_of(process, process));
        }
        Self { browser, max, before }
    }

    /// Completes when the job uses too much.
    pub(crate) async fn exceeded(&mut self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            for process in tree(self.browser) {
                let Some(bytes) = used(process) else { continue };
                let new = || if is_renderer(process) { 0 } else { bytes };
                let before = *self.before.entry(process).or_insert_with(new);
                if bytes > self.max.saturating_add(before) {
                    return;
                }
            }
        }
    }

    /// Whether the processes that serve all pages were left with more memory than a page may use.
    pub(crate) fn began_over(&self) -> bool {
        self.before.iter().any(|(process, bytes)| *bytes > self.max && !is_renderer(*process))
    }
}

/// Whether a process that serves all pages of a browser uses more than `max` bytes.
pub(super) fn is_shared_process_over(browser: u32, max: u64) -> bool {
    tree(browser)
        .into_iter()
        .any(|process| used(process).is_some_and(|bytes| bytes > max) && !is_renderer(process))
}

/// CPU time that all living processes of a browser have taken.
pub(super) fn cpu_time(browser: u32) -> Duration {
    tree(browser).into_iter().filter_map(ticks).fold(Duration::ZERO, |sum, ticks| sum + TICK * ticks)
}

fn is_renderer(process: u32) -> bool {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).any(|argument| argument == b"--type=renderer")
}

/// A browser and all processes below it.
fn tree(browser: u32) -> Vec<u32> {
    // Some are started by other threads than the main one, such as the network service.
    let threads = fs::read_dir(format!("/proc/{browser}/task")).into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let mut left: Vec<u32> = threads.flat_map(|thread: u32| children_of(browser, thread)).collect();
    let mut all = vec![browser];
    while let Some(process) = left.pop() {
        all.push(process);
        left.extend(children_of(process, process));
    }
    all
}

/// The processes that a thread has started.
fn children_of(process: u32, thread: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default();
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
        let before = used(own).unwrap();
        let block = vec![1_u8; 64 * 1024 * 1024];
        assert!(used(own).unwrap() >= before + 60 * 1024 * 1024);
        assert!(block.iter().all(|byte| *byte == 1));
        assert_eq!((used(u32::MAX), ticks(u32::MAX)), (None, None));
        let start = cpu_time(own);
        while cpu_time(own) < start + TICK * 2 {
            std::hint::black_box(block.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        }
    }

    #[tokio::test]
    async fn memory_of_before_does_not_count_and_new_memory_does() {
        // More than other tests of this process use meanwhile.
        const MAX: u64 = 256 * 1024 * 1024;
        let earlier = vec![1_u8; 300 * 1024 * 1024];
        let mut watch = MemoryWatch::new(std::process::id(), MAX);
        assert!(watch.began_over());
        let soon = Duration::from_millis(350);
        tokio::time::timeout(soon, watch.exceeded()).await.unwrap_err();
        let new = vec![1_u8; 400 * 1024 * 1024];
        watch.exceeded().await;
        assert!(earlier.iter().chain(&new).all(|byte| *byte == 1));
    }

    #[test]
    fn processes_of_other_threads_are_found() {
        let (started, child) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        // A process is listed with the thread that started it for as long as that runs.
        let thread = std::thread::spawn(move || {
            let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
            started.send(child.id()).unwrap();
            let _ = ended.recv();
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let child = child.recv().unwrap();
        assert!(tree(std::process::id()).contains(&child));
        drop(end);
        thread.join().unwrap();
    }
}
