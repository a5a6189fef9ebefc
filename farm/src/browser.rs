//! One running Chromium: how it is started as an unprivileged user, its process, and the connection to it.
//!
//! Invariant: when a [`Browser`] is dropped, all its processes are killed and reaped and its profile is
//! removed. If the farm is killed, the kernel kills its browsers.

pub(crate) mod command;
mod environment;
mod process;
mod procfs;
pub(crate) mod user_agent;

use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use chromiumoxide_cdp::cdp::browser_protocol::{
    browser::GetVersionParams,
    headless_experimental::BeginFrameParams,
    target::{
        AttachToTargetParams, CloseTargetParams, CreateTargetParams, FilterEntry, SetAutoAttachParams,
        TargetFilter,
    },
};
use parking_lot::Mutex;
use platen_cdp::{BrowserPipes, CdpError, Connection, Session};
use tokio::{task::spawn_blocking, time::timeout};
use tokio_util::task::TaskTracker;

use self::{
    command::Drawing,
    environment::{Identity, Workspace},
    process::{Process, StderrTail},
    procfs::NetworkService,
};
pub(crate) use self::{
    process::{Exit, lower_priority},
    procfs::MemoryWatch,
};
use crate::{
    config::Config,
    egress::{Egress, PageProxy},
    error::{LaunchError, StartError},
};

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
    pub(crate) page_memory_mib: u32,
    /// Memory that its shared processes may use besides, for the picture of the job.
    picture_bytes: Arc<AtomicU64>,
}

impl Browser {
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
        let _ = timeout(CLOSE_TIMEOUT, self.connection.closed()).await;
        if !self.connection.is_closed() {
            return None;
        }
        let exit = timeout(EXIT_TIMEOUT, self.process.exit()).await;
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

    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr_tail.text()
    }
}

/// A start takes 0.15 s with warm caches, and many times that with cold caches, a slow disk and busy CPUs.
const START_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Launcher {
    config: Arc<Config>,
    binary: PathBuf,
    /// The default of the browsers; `None` if the version of the executable is not known.
    user_agent: Option<String>,
    identity: Identity,
    /// `None` after [`Launcher::close`].
    workspace: Mutex<Option<Workspace>>,
    /// This Chromium has no begin-frame control.
    draws_continuously: AtomicBool,
    /// Has a token of each browser until its processes and profile are removed.
    browsers: TaskTracker,
    egress: Egress,
    /// Proxy of the browser's own requests, which belong to no page: it denies all connections.
    browser_proxy: PageProxy,
}

impl Launcher {
    /// Finds Chromium and its user, and creates the directory for profiles.
    pub(crate) async fn new(config: Arc<Config>, egress: Egress) -> Result<Self, StartError> {
        let binary = command::find(config.chromium.as_deref())?;
        let user_agent =
            command::version(&binary).await.map(|version| user_agent::of_chrome(&version, false));
        let identity = Identity::resolve(config.browser_user.as_deref())?;
        let parent = std::env::temp_dir();
        let workspace = Workspace::create(&parent).map_err(|error| StartError::Workspace(parent, error))?;
        let browser_proxy = egress.browser_proxy().await.map_err(StartError::ProxyPort)?;
        process::adopt_orphans();
        if config.unsafe_no_sandbox {
            tracing::warn!(
                "Chromium runs without its sandbox: a page that exploits it can act as the browsers' user"
            );
        }
        Ok(Self {
            config,
            binary,
            user_agent,
            identity,
            workspace: Mutex::new(Some(workspace)),
            draws_continuously: AtomicBool::new(false),
            browsers: TaskTracker::new(),
            egress,
            browser_proxy,
        })
    }

    /// Starts no more browsers, and completes when the processes and profiles of all browsers are removed.
    /// Browsers must have been dropped or killed before.
    pub(crate) async fn close(&self) {
        self.browsers.close();
        self.browsers.wait().await;
        drop(self.workspace.lock().take());
    }

    /// Starts a browser and waits until it answers. It has begin-frame control if this Chromium supports it.
    pub(crate) async fn launch(&self) -> Result<Browser, LaunchError> {
        if !self.draws_continuously.load(Ordering::Relaxed) {
            let browser = self.launch_as(Drawing::BeginFrameControl).await?;
            match timeout(HANG_TIMEOUT, supports_begin_frames(&browser.connection)).await {
                Err(_) => return Err(LaunchError::Timeout(HANG_TIMEOUT)),
                Ok(Err(error)) => return Err(LaunchError::Protocol(error)),
                Ok(Ok(true)) => return Ok(browser),
                Ok(Ok(false)) => {
                    self.draws_continuously.store(true, Ordering::Relaxed);
                    tracing::info!(
                        product = browser.product,
                        "this browser has no begin-frame control; images cost more CPU than with \
                         chromium-headless-shell"
                    );
                }
            }
        }
        self.launch_as(Drawing::Continuous).await
    }

    async fn launch_as(&self, drawing: Drawing) -> Result<Browser, LaunchError> {
        let profile = match &*self.workspace.lock() {
            Some(workspace) => workspace.create_profile(self.identity).map_err(LaunchError::Spawn)?,
            None => return Err(LaunchError::Closed),
        };
        let (command, pipes) = self.command(profile.path(), drawing).map_err(LaunchError::Spawn)?;
        let (process, stderr) =
            Process::spawn(command, profile, self.browsers.token()).await.map_err(LaunchError::Spawn)?;
        let stderr_tail = StderrTail::listen(stderr).map_err(LaunchError::Spawn)?;
        let connection = Connection::open(pipes).map_err(LaunchError::Spawn)?;
        let version = match timeout(START_TIMEOUT, connection.call(&GetVersionParams {})).await {
            Err(_) => return Err(LaunchError::Timeout(START_TIMEOUT)),
            Ok(Err(CdpError::Closed)) => return Err(exited(stderr_tail).await),
            Ok(Err(error)) => return Err(LaunchError::Protocol(error)),
            Ok(Ok(version)) => version,
        };
        connection.send(&attach_to_shared_workers()).map_err(LaunchError::Protocol)?;
        Ok(Browser {
            product: version.product,
            connection: Arc::new(connection),
            has_begin_frame_control: drawing == Drawing::BeginFrameControl,
            egress: self.egress.clone(),
            page_memory_mib: self.config.page_memory_mib().get(),
            picture_bytes: Arc::default(),
            network_service: NetworkService::of(process.pid).await,
            process,
            stderr_tail,
        })
    }

    /// The command, and the farm's ends of the pipes to and from the browser.
    fn command(&self, profile: &Path, drawing: Drawing) -> io::Result<(Command, BrowserPipes)> {
        // A browser with hundreds of busy threads gets no more CPU time than one with a single thread where the kernel
        // schedules each session as a group (autogroup, sched(7)).
        let mut command = Command::new("setsid");
        command.arg("setpriv");
        // The sandbox uses user namespaces and needs no set-user-id helper.
        command.arg("--no-new-privs");
        // If the farm is killed, the kernel kills the browser.
        command.args(["--pdeathsig", "KILL"]);
        if let Identity::Other { uid, gid } = self.identity {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]);
        }
        command.arg("--").arg(&self.binary).args(command::switches(
            &self.config,
            profile,
            drawing,
            &self.browser_proxy.address(),
            self.user_agent.as_deref(),
        ));
        command.env_clear().envs(environment::variables(profile)).current_dir(profile);
        let pipes = BrowserPipes::attach(&mut command)?;
        Ok((command, pipes))
    }
}

/// Opens a page with begin-frame control and draws a frame of it. Only chromium-headless-shell supports both;
/// other builds open the page and refuse the frame.
async fn supports_begin_frames(connection: &Arc<Connection>) -> Result<bool, CdpError> {
    let mut target = CreateTargetParams::new("about:blank");
    target.enable_begin_frame_control = Some(true);
    let drawn = async {
        let target = connection.call(&target).await?.target_id;
        let mut attach = AttachToTargetParams::new(target.clone());
        attach.flatten = Some(true);
        let (session, _events) =
            Session::new(Arc::clone(connection), connection.call(&attach).await?.session_id);
        session.call(&BeginFrameParams::default()).await?;
        connection.send(&CloseTargetParams::new(target))
    };
    match drawn.await {
        Ok(()) => Ok(true),
        Err(CdpError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Attaches to shared workers, which belong to no page; each waits until its page's user agent is set.
fn attach_to_shared_workers() -> SetAutoAttachParams {
    let filter = FilterEntry { exclude: None, r#type: Some("shared_worker".to_owned()) };
    let mut attach = SetAutoAttachParams::new(true, true);
    (attach.flatten, attach.filter) = (Some(true), Some(TargetFilter::new([filter])));
    attach
}

async fn exited(stderr_tail: StderrTail) -> LaunchError {
    match stderr_tail.into_text().await {
        text if text.contains("No usable sandbox") => LaunchError::NoSandbox,
        stderr_tail => LaunchError::Exited(stderr_tail),
    }
}
