//! One running Chromium: its process, which runs as an unprivileged user, and the connection to it.
//!
//! Invariant: when a [`Browser`] is dropped, all its processes are killed and reaped and its profile is
//! removed. If the farm is killed, the kernel kills its browsers.

pub(crate) mod command;
mod environment;
mod launcher;
mod process;
mod procfs;
pub(crate) mod user_agent;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use platen_cdp::Connection;
use tokio::task::spawn_blocking;

pub(crate) use self::{launcher::Launcher, process::Exit, procfs::MemoryWatch};
use self::{
    process::{Process, StderrTail},
    procfs::NetworkService,
};
use crate::egress::Egress;

/// Memory of the processes that draw and encode a picture, for each of its pixels: the parts that are drawn, the whole
/// picture, and two copies. 799 MiB and 734 MiB of shared memory were measured with 100 megapixels.
const PICTURE_BYTES_PER_PIXEL: u64 = 4 * 4;
/// Time for what a browser does at once: to draw its first frame, or to open, prepare or close a page. That takes 30 to
/// 100 ms, and up to 2 s on a machine that is short of CPU, also if a script of the page never returns. A browser that takes
/// longer hangs, or has lost the zygote process that forks its renderers.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the pipe of an exiting browser may stay open after the sessions of its pages have ended.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a browser may take to exit after its pipe has closed: it may write a core file. Its standard error closes then
/// as well, unless a process that the farm did not start still holds it.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A running browser.
#[derive(Debug)]
pub(crate) struct Browser {
    /// Name and version, such as `HeadlessChrome/156.0.8078.79`.
    pub(crate) product: String,
    /// Closes when the browser exits.
    pub(crate) connection: Arc<Connection>,
    /// It draws frames only on command (`HeadlessExperimental.beginFrame`).
    pub(crate) has_begin_frame_control: bool,
    pub(crate) egress: Egress,
    process: Process,
    network_service: NetworkService,
    stderr_tail: StderrTail,
    /// Memory limit of one job.
    pub(crate) page_memory_mib: u32,
    /// Memory that its shared processes may use besides, for the picture of the job.
    picture_bytes: Arc<AtomicU64>,
}

impl Browser {
    /// Its version, such as `156.0.8078.79`.
    pub(crate) fn version(&self) -> &str {
        self.product.rsplit('/').next().unwrap_or_default()
    }

    /// Kills its processes. Calls to it then fail, and the pool replaces it.
    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    /// Starts watching the memory of its processes for a job that starts now.
    pub(crate) fn watch_memory(&self) -> MemoryWatch {
        MemoryWatch::new(self.process.pid, self.page_memory_bytes(), Arc::clone(&self.picture_bytes))
    }

    fn page_memory_bytes(&self) -> u64 {
        u64::from(self.page_memory_mib) * 1024 * 1024
    }

    /// Private memory of its processes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        procfs::private_bytes(self.process.pid)
    }

    /// Allows the job the memory for a picture of this many device pixels.
    pub(crate) fn allow_picture(&self, pixels: u64) {
        self.picture_bytes.store(pixels * PICTURE_BYTES_PER_PIXEL, Ordering::Relaxed);
    }

    /// Whether a process other than a renderer uses more memory than the limit of one job. Closing the page
    /// does not free that memory.
    pub(crate) fn is_over_memory(&self) -> bool {
        procfs::is_shared_process_over(self.process.pid, self.page_memory_bytes())
    }

    /// CPU time of all its running processes since their start.
    pub(crate) async fn cpu_time(&self) -> Duration {
        let pid = self.process.pid;
        // Reading `/proc` takes longer than a thread of the runtime may be blocked.
        spawn_blocking(move || procfs::cpu_time(pid)).await.unwrap_or_default()
    }

    /// How it exited; `None` if it is running.
    pub(crate) async fn exit(&self) -> Option<Exit> {
        // Sessions end shortly before the pipe does.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.connection.closed()).await;
        if !self.connection.is_closed() {
            return None;
        }
        let exit = tokio::time::timeout(EXIT_TIMEOUT, self.process.exit()).await;
        Some(exit.unwrap_or(Exit::Ended))
    }

    /// Completes when its network service has exited while it runs itself.
    pub(crate) async fn network_service_exited(&self) {
        self.network_service.exited().await;
        if procfs::is_exiting(self.process.pid) {
            std::future::pending::<()>().await;
        }
    }

    /// Whether its network service has exited: requests may have failed that no host has failed.
    pub(crate) fn has_lost_network_service(&self) -> bool {
        self.network_service.has_exited()
    }

    /// End of its standard error, for the log.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr_tail.text()
    }
}
