//! `platen up` on a database file, in its own process, with its files in a temporary directory.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use platen_tests::{
    app::{Options, TestApp},
    deployment::DatabaseKind,
    process::Process,
    procfs::{self, ProcessId},
    settings::Settings,
};
use tempfile::TempDir;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    // Dropped before its directory.
    pub(crate) app: TestApp,
    pub(crate) address: SocketAddr,
    _directory: TempDir,
}

impl Server {
    /// Starts a server with its own farm.
    pub(crate) async fn start(arguments: Vec<String>) -> Result<Self> {
        Self::start_with(&Options { arguments, ..Options::own_farm(DatabaseKind::File) }).await
    }

    pub(crate) async fn start_with(options: &Options) -> Result<Self> {
        let directory = TempDir::with_prefix("platen-bench-")?;
        let settings = Settings::from_env()?;
        let app = TestApp::start(options, &settings, &reqwest::Client::new(), directory.path()).await?;
        let address =
            app.base_url.strip_prefix("http://").context("the base URL is not an http URL")?.parse()?;
        Ok(Self { app, address, _directory: directory })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.app.server_pid()
    }

    /// Stops the server with SIGTERM.
    pub(crate) async fn stop(mut self) -> Result<Stopped> {
        stop(&mut self.app.process).await
    }
}

/// Stops a server or a farm with SIGTERM.
pub(crate) async fn stop(process: &mut Process) -> Result<Stopped> {
    let below = procfs::descendants(process.pid());
    let browsers = procfs::browsers(process.pid());
    let workspaces: Vec<_> = browsers.iter().filter_map(|it| it.browser_workspace().ok()).collect();
    process.signal(Signal::SIGTERM)?;
    let started = Instant::now();
    let status = process.ended().await?;
    let duration = started.elapsed();
    let alive = below.iter().filter(|it| it.is_alive()).map(ProcessId::command_line);
    let directories = workspaces.iter().filter(|path| path.exists()).map(|path| path.display().to_string());
    Ok(Stopped { status: status.to_string(), duration, left: alive.chain(directories).collect() })
}

/// How a server stopped.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// Such as `exit status: 0`.
    pub(crate) status: String,
    pub(crate) duration: Duration,
    /// Processes and directories that are left.
    pub(crate) left: Vec<String>,
}

impl Stopped {
    pub(crate) fn text(&self) -> String {
        format!("{} after {:.1} s, left {:?}", self.status, self.duration.as_secs_f64(), self.left)
    }
}
