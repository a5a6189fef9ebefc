//! The processes of a browser, as `/proc` shows them: their memory and CPU time, and the end of the network service.
//!
//! A browser serves one job at a time, so all memory that its processes allocate during the job is counted
//! for the job. Memory from before is not counted: shared processes may not have freed that of an earlier
//! job, and an earlier page's renderer may still be exiting. Shared libraries and mapped files are not
//! counted either, because they are the same for every page.
//!
//! When a network service exits, Chromium starts another one. But requests in progress fail, and the browser contexts of
//! existing pages lose their proxies: their requests go to the browser's own proxy, which denies them. So a browser whose
//! network service exits is replaced.

use std::{
    collections::HashMap,
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use platen_program::proc_field;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::{io::unix::AsyncFd, task::spawn_blocking, time::sleep};

/// How often the memory is read while a job runs. A page can allocate about 1 GiB per second.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Clock ticks of `/proc/<pid>/stat` in a second, on all architectures that Chromium supports.
const USER_HZ: u32 = 100;

/// The memory of a browser's processes since the start of a job.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    browser: u32,
    max_bytes: u64,
    /// Bytes that shared processes may use besides, for the picture.
    picture_bytes: Arc<AtomicU64>,
    before: HashMap<u32, u64>,
}

impl MemoryWatch {
    /// Starts with a job, which may use `max_bytes` in each process.
    pub(super) fn new(browser: u32, max_bytes: u64, picture_bytes: Arc<AtomicU64>) -> Self {
        let mut before = HashMap::new();
        let mut unvisited = vec![browser];
        while let Some(process) = unvisited.pop() {
            before.extend(used_bytes(process).map(|bytes| (process, bytes)));
            // The main thread's children are nearly all, and are cheap to find.
            unvisited.extend(children_of(process, process));
        }
        Self { browser, max_bytes, picture_bytes, before }
    }

    /// Completes when a process uses more memory for the job than it may.
    pub(crate) async fn exceeded(mut self) {
        loop {
            tokio::time::sleep(SAMPLE_INTERVAL).await;
            // Reading `/proc` takes longer than a thread of the runtime may be blocked.
            let sampled = spawn_blocking(move || (self.is_exceeded(), self)).await;
            match sampled
                .expect("reading `/proc` does not panic, and the runtime does not end before its jobs")
            {
                (true, _) => return,
                (false, watch) => self = watch,
            }
        }
    }

    fn is_exceeded(&mut self) -> bool {
        tree(self.browser).into_iter().any(|process| {
            let Some(bytes) = used_bytes(process) else { return false };
            let new = || if is_renderer(process) { 0 } else { bytes };
            let before = *self.before.entry(process).or_insert_with(new);
            let allowed = self.max_bytes.saturating_add(before);
            let picture = self.picture_bytes.load(Ordering::Relaxed);
            bytes > allowed && (is_renderer(process) || bytes > allowed.saturating_add(picture))
        })
    }

    /// Whether a shared process already used more than the limit before the job.
    pub(crate) fn began_over(&self) -> bool {
        self.before.iter().any(|(process, bytes)| *bytes > self.max_bytes && !is_renderer(*process))
    }
}

/// Whether a shared process of a browser, one that is not a renderer, uses more than `max_bytes`.
pub(super) fn is_shared_process_over(browser: u32, max_bytes: u64) -> bool {
    tree(browser)
        .into_iter()
        .any(|process| used_bytes(process).is_some_and(|bytes| bytes > max_bytes) && !is_renderer(process))
}

pub(super) fn cpu_time(browser: u32) -> Duration {
    Duration::from_secs(tree(browser).into_iter().filter_map(ticks).sum()) / USER_HZ
}

/// Private memory of all running processes of a browser, in bytes. Memory that they share is left out, because it would
/// be counted for each.
pub(super) fn private_bytes(browser: u32) -> u64 {
    tree(browser).into_iter().filter_map(|process| memory(process, &["RssAnon:"])).sum()
}

/// The process of a browser's network service; `None` if it does not exist.
fn network_service(browser: u32) -> Option<u32> {
    let is_network_service =
        |process: &u32| has_argument(*process, b"--utility-sub-type=network.mojom.NetworkService");
    tree(browser).into_iter().find(is_network_service)
}

fn is_renderer(process: u32) -> bool {
    has_argument(process, b"--type=renderer")
}

fn has_argument(process: u32, expected: &[u8]) -> bool {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    // Chromium replaces the null bytes between the arguments of its helper processes by spaces.
    command.split(|byte| matches!(byte, 0 | b' ')).any(|argument| argument == expected)
}

/// The process ids of a browser and all its descendants.
fn tree(browser: u32) -> Vec<u32> {
    // Some, such as the network service, are children of other threads than the main one.
    let threads = fs::read_dir(format!("/proc/{browser}/task")).into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let mut unvisited: Vec<u32> = threads.flat_map(|thread: u32| children_of(browser, thread)).collect();
    let mut all = vec![browser];
    while let Some(process) = unvisited.pop() {
        all.push(process);
        unvisited.extend(children_of(process, process));
    }
    all
}

fn children_of(process: u32, thread: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Private memory of a process and memory that it shares with processes of its browser, in bytes; `None` if
/// it has exited.
fn used_bytes(process: u32) -> Option<u64> {
    memory(process, &["RssAnon:", "RssShmem:"])
}

fn memory(process: u32, fields: &[&str]) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kibibytes = fields.iter().map(|field| proc_field(&status, field)?.parse::<u64>().ok());
    kibibytes.sum::<Option<u64>>().map(|kibibytes| kibibytes * 1024)
}

/// User and system time of a process in ticks; `None` if it has exited.
fn ticks(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = fields(&stat).skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The fields of `/proc/<pid>/stat` after the program's name, which is in parentheses and may contain any character.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').unwrap_or_default().1.split_ascii_whitespace()
}

/// How often a browser that has just started is searched for the process, and for how long: about 2 s. It usually exists
/// when the browser answers for the first time. Without it the network service is assumed to run in the browser process.
const SEARCH_INTERVAL: Duration = Duration::from_millis(5);
const MAX_SEARCHES: u32 = 400;
/// Flag of a process that exits. The kernel sets it before it closes the files of the process, so a process whose
/// connections were closed has it.
const PF_EXITING: u32 = 0x4;

/// The process of a browser's network service; `None` if it was not found.
#[derive(Debug)]
pub(super) struct NetworkService(Option<u32>);

impl NetworkService {
    /// Searches for the process of a browser that has just started. From then on its exit is noticed; a browser
    /// that is used before could lose it unnoticed.
    pub(super) async fn of(browser: u32) -> Self {
        for _ in 0..MAX_SEARCHES {
            if let Some(pid) = network_service(browser) {
                return Self(Some(pid));
            }
            sleep(SEARCH_INTERVAL).await;
        }
        tracing::debug!(browser, "no process of a network service was found");
        Self(None)
    }

    /// Completes when the process has exited; never if it does not exist.
    pub(super) async fn exited(&self) {
        let Some(pid) = self.0 else { return std::future::pending().await };
        let process = Pid::from_raw(pid.cast_signed()).expect("a process has an id");
        let pidfd = pidfd_open(process, PidfdFlags::NONBLOCK).map_err(io::Error::from);
        #[expect(deprecated, reason = "its successor is unsafe, and an owned descriptor is I/O-safe")]
        let pidfd = pidfd.and_then(AsyncFd::new);
        match pidfd {
            Ok(pidfd) => drop(pidfd.readable().await),
            Err(_) if is_exiting(pid) => {}
            Err(error) => {
                tracing::debug!(%error, "the exit of a network service is noticed when a job begins");
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn has_exited(&self) -> bool {
        self.0.is_some_and(is_exiting)
    }
}

/// Whether a process has exited, or is about to.
pub(super) fn is_exiting(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => is_exiting_by(&stat).unwrap_or(false),
        Err(error) => {
            error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
        }
    }
}

/// Whether the contents of `/proc/<pid>/stat` are those of an exiting process; `None` if they cannot be read.
fn is_exiting_by(stat: &str) -> Option<bool> {
    let mut fields = fields(stat);
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let flags: u32 = fields.nth(5)?.parse().ok()?;
    Some(is_zombie || flags & PF_EXITING != 0)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn memory_and_cpu_time_of_this_process_are_measured() {
        let own = std::process::id();
        let before = used_bytes(own).unwrap();
        let block = vec![1_u8; 64 * 1024 * 1024];
        assert!(used_bytes(own).unwrap() >= before + 60 * 1024 * 1024);
        assert!(block.iter().all(|byte| *byte == 1));
        assert_eq!((used_bytes(u32::MAX), ticks(u32::MAX)), (None, None));
        let start = cpu_time(own);
        while cpu_time(own) == start {
            std::hint::black_box(block.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        }
    }

    #[tokio::test]
    async fn only_memory_allocated_during_the_job_counts() {
        // More than concurrent tests of this process use.
        const MAX_BYTES: u64 = 256 * 1024 * 1024;
        let earlier = vec![1_u8; 300 * 1024 * 1024];
        let watch = MemoryWatch::new(std::process::id(), MAX_BYTES, Arc::default());
        assert!(watch.began_over());
        let mut exceeded = pin!(watch.exceeded());
        tokio::time::timeout(SAMPLE_INTERVAL * 3, &mut exceeded).await.unwrap_err();
        let new = vec![1_u8; 400 * 1024 * 1024];
        exceeded.await;
        assert!(earlier.iter().chain(&new).all(|byte| *byte == 1));
    }

    #[test]
    fn an_exiting_process_is_recognised_by_its_flags() {
        let stat = |state: char, flags: u32| format!("7 (a) b) {state} 1 7 7 0 -1 {flags} 1 2 3");
        assert_eq!(is_exiting_by(&stat('S', 0x0040_0100)), Some(false));
        assert_eq!(is_exiting_by(&stat('R', 0x0040_0104)), Some(true));
        assert_eq!(is_exiting_by(&stat('Z', 0)), Some(true));
        assert_eq!(is_exiting_by(""), None);
    }
}
