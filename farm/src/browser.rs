//! One running Chromium: a process of an unprivileged user, and the connection to it.
//!
//! Invariant: a [`Browser`] that is dropped is killed with all its helpers, reaped, and its home
//! removed; and a farm that is killed takes its browsers with it. Left to others: how many there
//! are, when they are replaced (pool), what is done with one (render).

mod background;
mod binary;
mod identity;
mod priority;
mod process;
mod stderr;
mod switches;
mod usage;
mod workspace;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chromiumoxide_cdp::cdp::browser_protocol::{
    browser::GetVersionParams,
    headless_experimental::BeginFrameParams,
    target::{AttachToTargetParams, CloseTargetParams, CreateTargetParams},
};
use platen_cdp::{BrowserPipes, CdpError, Connection, Session};
use tokio_util::task::TaskTracker;

use self::{
    background::Background, identity::Identity, process::Process, stderr::StderrTail, workspace::Workspace,
};
pub(crate) use self::{
    background::{BackgroundBrowser, ForegroundJob},
    usage::MemoryWatch,
};
use crate::{
    Config, StartError,
    egress::{Egress, PageProxy},
    metrics::Metrics,
};

/// A warm start takes 0.15 s; a cold one on a busy machine with a slow disk takes many times that.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long after the end of a page's session the pipe of a dying browser may still be open.
const CLOSING_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a browser whose pipe is closed may take to exit: it may write a core file.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a browser did not come up.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The operating system did not give what a process needs.
    #[error("the browser's process cannot be started")]
    Spawn(#[source] io::Error),
    /// The farm has been shut down.
    #[error("the farm has been shut down")]
    Closed,
    /// It ended before it answered.
    #[error("the browser ended at once{}", stderr::after_colon(stderr_tail))]
    Ended {
        /// The last it wrote on standard error.
        stderr_tail: String,
    },
    /// The kernel lets it have no sandbox.
    #[error(
        "Chromium cannot set up its sandbox. It needs unprivileged user namespaces: \
         sysctl kernel.unprivileged_userns_clone=1 (Debian), \
         sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or, in a container, \
         a seccomp profile that allows clone and unshare. If every page is your own, \
         --unsafe-no-sandbox does without"
    )]
    NoSandbox,
    /// It ran and said nothing.
    #[error("the browser did not answer within {} s", START_LIMIT.as_secs())]
    Silent,
    /// It did not understand the first command.
    #[error("the browser did not answer as Chromium does")]
    Protocol(#[source] CdpError),
}

/// Everything needed to start browsers, settled once.
#[derive(Debug)]
pub(crate) struct Launcher {
    config: Config,
    binary: PathBuf,
    identity: Identity,
    /// There until the farm is closed.
    workspace: Mutex<Option<Workspace>>,
    /// This Chromium has answered that it does not draw on demand.
    draws_by_itself: AtomicBool,
    alive: TaskTracker,
    egress: Egress,
    background: Background,
    /// The proxy of whatever is not a page of the farm's: nothing gets through it.
    dead_end: PageProxy,
}

impl Launcher {
    /// Finds the browser and its user, and makes the directory for homes.
    pub(crate) async fn new(
        config: Config,
        egress: Egress,
        metrics: Arc<Metrics>,
    ) -> Result<Self, StartError> {
        let binary = binary::find(config.chromium.as_deref())?;
        let identity = Identity::resolve(config.browser_user.as_deref())?;
        let parent = std::env::temp_dir();
        let workspace =
            Workspace::create(&parent).map_err(|source| StartError::Workspace { path: parent, source })?;
        let dead_end = egress.dead_end().await.map_err(StartError::PageProxy)?;
        process::adopt_orphans();
        if config.unsafe_no_sandbox {
            tracing::warn!(
                "Chromium runs without its sandbox: whoever writes a page may take over this machine"
            );
        }
        Ok(Self {
            config,
            binary,
            identity,
            workspace: Mutex::new(Some(workspace)),
            draws_by_itself: AtomicBool::new(false),
            alive: TaskTracker::new(),
            egress,
            background: Background::new(metrics),
            dead_end,
        })
    }

    /// Launches no more, and completes when no browser of this launcher is left, neither its
    /// processes nor its home. Browsers must have been dropped or killed.
    pub(crate) async fn close(&self) {
        self.alive.close();
        self.alive.wait().await;
        drop(self.workspace().take());
    }

    fn workspace(&self) -> MutexGuard<'_, Option<Workspace>> {
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a browser and waits until it answers. It draws on demand if it can.
    pub(crate) async fn launch(&self) -> Result<Browser, LaunchError> {
        if !self.draws_by_itself.load(Ordering::Relaxed) {
            let (mut browser, _starting) = self.launch_as(Drawing::OnDemand).await?;
            match tokio::time::timeout(START_LIMIT, draws_on_demand(&browser.connection)).await {
                Err(_) => return Err(LaunchError::Silent),
                Ok(Err(error)) => return Err(LaunchError::Protocol(error)),
                Ok(Ok(true)) => {
                    browser.draws_on_command = true;
                    return Ok(browser);
                }
                Ok(Ok(false)) => {
                    self.draws_by_itself.store(true, Ordering::Relaxed);
                    tracing::info!(
                        product = browser.product(),
                        "this browser does not draw on demand; pictures cost more than with \
                         chromium-headless-shell"
                    );
                }
            }
        }
        self.launch_as(Drawing::ByItself).await.map(|(browser, _)| browser)
    }

    /// Starts a browser in the background.
    async fn launch_as(&self, drawing: Drawing) -> Result<(Browser, BackgroundBrowser), LaunchError> {
        let home = match &*self.workspace() {
            Some(workspace) => workspace.home(self.identity).map_err(LaunchError::Spawn)?,
            None => return Err(LaunchError::Closed),
        };
        let (command, pipes) = self.command(home.path(), drawing).map_err(LaunchError::Spawn)?;
        let (process, stderr) =
            Process::spawn(command, home, self.alive.token()).await.map_err(LaunchError::Spawn)?;
        let starting = self.background.add(process.group());
        let stderr_tail = StderrTail::listen(stderr).map_err(LaunchError::Spawn)?;
        let connection = Connection::open(pipes).map_err(LaunchError::Spawn)?;
        let version = match tokio::time::timeout(START_LIMIT, connection.call(&GetVersionParams {})).await {
            Err(_) => return Err(LaunchError::Silent),
            Ok(Err(CdpError::Closed)) => return Err(ended(stderr_tail).await),
            Ok(Err(error)) => return Err(LaunchError::Protocol(error)),
            Ok(Ok(version)) => version,
        };
        priority::set_for_session(process.pid(), priority::NORMAL);
        let browser = Browser {
            product: version.product,
            connection: Arc::new(connection),
            draws_on_command: false,
            egress: self.egress.clone(),
            background: self.background.clone(),
            page_memory: self.config.page_memory_bytes(),
            process,
            stderr_tail,
        };
        Ok((browser, starting))
    }

    fn command(&self, home: &Path, drawing: Drawing) -> io::Result<(Command, BrowserPipes)> {
        // A session of its own, which the kernel schedules as one, however many threads a page starts.
        let mut command = Command::new("setsid");
        command.args(["nice", "-n", &priority::NORMAL.to_string(), "setpriv"]);
        // The sandbox needs no set-user-id helper, so nothing below may gain privileges.
        command.arg("--no-new-privs");
        // If the farm is killed, the kernel kills the browser.
        command.args(["--pdeathsig", "KILL"]);
        if let Identity::Other { uid, gid } = self.identity {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]);
        }
        command.arg("--").arg(&self.binary).args(switches::for_browser(
            &self.config,
            home,
            drawing,
            &self.dead_end.address(),
        ));
        command.env_clear().envs(environment(home)).current_dir(home);
        let pipes = BrowserPipes::attach(&mut command)?;
        Ok((command, pipes))
    }
}

/// Who decides when a page is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drawing {
    /// The farm, frame by frame: nothing is drawn that nobody looks at, and a picture is one frame.
    OnDemand,
    /// The browser, sixty times a second.
    ByItself,
}

/// Asks a browser for a page that draws on demand, and for a frame of it: Chromium with a window
/// takes the first for granted and does not know the second. Only chromium-headless-shell has both.
async fn draws_on_demand(connection: &Arc<Connection>) -> Result<bool, CdpError> {
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

/// What a browser may know of the farm's environment: where fonts are and what time it is.
/// Tokens and addresses of other services stay here.
fn environment(home: &Path) -> impl Iterator<Item = (&'static str, OsString)> {
    const HANDED_ON: &[&str] = &["TZ", "FONTCONFIG_FILE", "FONTCONFIG_PATH"];
    let handed_on = HANDED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let home = home.as_os_str();
    handed_on.chain([
        ("HOME", home.to_owned()),
        ("TMPDIR", home.to_owned()),
        ("PATH", "/usr/bin:/bin".into()),
        ("LANG", "C.UTF-8".into()),
    ])
}

async fn ended(stderr_tail: StderrTail) -> LaunchError {
    match stderr_tail.into_text().await {
        text if text.contains("No usable sandbox") => LaunchError::NoSandbox,
        stderr_tail => LaunchError::Ended { stderr_tail },
    }
}

/// A running browser.
#[derive(Debug)]
pub(crate) struct Browser {
    product: String,
    connection: Arc<Connection>,
    draws_on_command: bool,
    egress: Egress,
    background: Background,
    process: Process,
    stderr_tail: StderrTail,
    /// Bytes that one page may use.
    page_memory: u64,
}

impl Browser {
    /// Name and version, such as `HeadlessChrome/156.0.8078.79`.
    pub(crate) fn product(&self) -> &str {
        &self.product
    }

    /// The way to talk to it.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Whether it draws only on command: frame by frame, by `HeadlessExperimental.beginFrame`.
    pub(crate) fn draws_on_command(&self) -> bool {
        self.draws_on_command
    }

    /// The way out for its pages.
    pub(crate) fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Ends it at once: every call to it fails, and its pool replaces it.
    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    /// Watches the memory of its processes for a job that begins now.
    pub(crate) fn watch_memory(&self) -> MemoryWatch {
        MemoryWatch::new(self.process.pid(), self.page_memory)
    }

    /// Whether another process than a renderer uses more memory than a page may use: closing the page
    /// does not end it.
    pub(crate) fn is_over_memory(&self) -> bool {
        usage::is_shared_process_over(self.process.pid(), self.page_memory)
    }

    /// CPU time that its processes have taken.
    pub(crate) fn cpu_time(&self) -> Duration {
        usage::cpu_time(self.process.pid())
    }

    /// A job of this browser is in the foreground until the guard is dropped.
    pub(crate) fn foreground_job(&self) -> ForegroundJob {
        self.background.foreground_job()
    }

    /// Lowers the priority of all its processes, and stops them while other jobs begin until the guard is
    /// dropped.
    pub(crate) fn lower_priority(&self) -> BackgroundBrowser {
        priority::set(self.process.pid(), priority::LOW);
        self.background.add(self.process.group())
    }

    /// Restores the priority of all its processes; false if only root could.
    pub(crate) fn restore_priority(&self) -> bool {
        priority::set(self.process.pid(), priority::NORMAL)
    }

    /// Whether it crashed by itself rather than being killed; none if it is alive.
    pub(crate) async fn crashed(&self) -> Option<bool> {
        // Sessions end a moment before the pipe does.
        let _ = tokio::time::timeout(CLOSING_TIMEOUT, self.closed()).await;
        if !self.is_closed() {
            return None;
        }
        let exit = tokio::time::timeout(EXIT_TIMEOUT, self.process.exit()).await;
        Some(exit == Ok(process::Exit::Crashed))
    }

    /// Completes when it is gone.
    pub(crate) async fn closed(&self) {
        self.connection.closed().await;
    }

    /// Whether it is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// The last it wrote on standard error, for the log.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr_tail.text()
    }
}
