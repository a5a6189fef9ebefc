//! The server that is put under load, and the thread of the load generator.
//!
//! Invariant: the generator's own waits do not count as the server's.

use std::{net::SocketAddr, thread, time::Duration};

use anyhow::{Context as _, Result};
use nix::time::{ClockId, clock_gettime};
use platen_harness::{
    app::{Options, TestApp},
    deployment::DatabaseKind,
    process::Stopped,
    settings::Settings,
    site,
};
use rustix::process::setpriority_process;
use tempfile::TempDir;
use tokio::{runtime::Builder, sync::oneshot, task::LocalSet};

/// The load generator runs before the server and its browsers.
const NICE: i32 = -10;

/// Browsers of a farm under load.
pub(crate) const BROWSERS: usize = 4;

/// The time before a measurement, for pages and connections to be opened.
pub(crate) const WARM_UP: Duration = Duration::from_secs(2);

/// Runs a load generator on one thread of its own, where it can spawn local tasks. Returns its result and the CPU
/// time of the thread. As root, the thread has the priority [`NICE`]: it stands for clients on other machines, so
/// its own waits for a CPU must not count as the server's.
pub(crate) async fn on_own_thread<T: Send + 'static>(
    generator: impl AsyncFnOnce() -> Result<T> + Send + 'static,
) -> Result<(T, Duration)> {
    let (sender, result) = oneshot::channel();
    thread::Builder::new().name("load".to_owned()).spawn(move || {
        // Linux applies it to the calling thread; without permission the figures are higher.
        let _ = setpriority_process(None, NICE);
        let run = || -> Result<(T, Duration)> {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let value = LocalSet::new().block_on(&runtime, generator())?;
            Ok((value, Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?)))
        };
        let _ = sender.send(run());
    })?;
    result.await.context("the load generator has panicked")?
}

/// `platen up` on a database file, in its own process, with its files in a temporary directory.
#[derive(Debug)]
pub(crate) struct Server {
    // Dropped before its directory.
    pub(crate) app: TestApp,
    pub(crate) address: SocketAddr,
    _directory: TempDir,
}

/// A server with its own farm, which may reach a [`Site`](site::Site).
pub(crate) fn own_farm() -> Options {
    let arguments = vec!["--browsers".to_owned(), BROWSERS.to_string()];
    Options { arguments, ..Options::own_farm(DatabaseKind::File) }.resolving(site::HOST)
}

impl Server {
    pub(crate) async fn start(options: &Options) -> Result<Self> {
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
        self.app.process.stop().await
    }
}
