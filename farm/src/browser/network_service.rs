//! The process of a browser's network service.
//!
//! When it exits, Chromium starts another one. But requests in progress fail, and the browser contexts of existing
//! pages lose their proxies: their requests go to the browser's own proxy, which denies them. So a browser whose
//! network service exits is replaced.

use std::{fs, io, sync::OnceLock, time::Duration};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::{io::unix::AsyncFd, time::sleep};

use super::usage;

/// How often and how many times a browser that has just started is searched for the process before it is used without it.
/// It usually exists when the browser answers for the first time.
const SEARCH_INTERVAL: Duration = Duration::from_millis(5);
const MAX_SEARCHES: u32 = 40;
/// How often it is searched for afterwards, and how often it is checked on a kernel without pidfds.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// After this number of late searches the network service is assumed to run in the browser process.
const MAX_LATE_SEARCHES: u32 = 100;
/// Flag of a process that exits. The kernel sets it before it closes the files of the process, so a process whose
/// connections were closed has it.
const PF_EXITING: u32 = 0x4;

/// The network service of a browser.
#[derive(Debug, Default)]
pub(super) struct NetworkService {
    /// Process id; not set until it was found.
    pid: OnceLock<u32>,
}

impl NetworkService {
    /// Searches for the process of a browser that has just started. From then on its exit is noticed; a browser
    /// that is used before could lose it unnoticed.
    pub(super) async fn of(browser: u32) -> Self {
        let service = Self::default();
        service.search(browser, MAX_SEARCHES, SEARCH_INTERVAL).await;
        service
    }

    /// Completes when the process has exited; never if it does not exist.
    pub(super) async fn exited(&self, browser: u32) {
        let Some(pid) = self.search(browser, MAX_LATE_SEARCHES, CHECK_INTERVAL).await else {
            tracing::debug!(browser, "no process of a network service was found");
            return std::future::pending().await;
        };
        let process = Pid::from_raw(pid.cast_signed()).expect("a process has an id");
        let pidfd = pidfd_open(process, PidfdFlags::NONBLOCK).map_err(io::Error::from);
        #[expect(deprecated, reason = "its successor is unsafe, and an owned descriptor is I/O-safe")]
        let pidfd = pidfd.and_then(AsyncFd::new);
        match pidfd {
            Ok(pidfd) => drop(pidfd.readable().await),
            Err(_) => {
                while !is_exiting(pid) {
                    sleep(CHECK_INTERVAL).await;
                }
            }
        }
    }

    /// Whether it has exited, or is about to.
    pub(super) fn has_exited(&self) -> bool {
        self.pid.get().is_some_and(|pid| is_exiting(*pid))
    }

    async fn search(&self, browser: u32, times: u32, interval: Duration) -> Option<u32> {
        for _ in 0..times {
            if let Some(pid) = self.pid.get().copied().or_else(|| usage::network_service(browser)) {
                return Some(*self.pid.get_or_init(|| pid));
            }
            sleep(interval).await;
        }
        None
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
    // The program's name, in parentheses, may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let flags: u32 = fields.nth(5)?.parse().ok()?;
    Some(is_zombie || flags & PF_EXITING != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_exiting_from_its_end_on() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(!is_exiting(child.id()));
        child.kill().unwrap();
        // It is a zombie until it is reaped.
        while !is_exiting(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_exiting(child.id()));
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
