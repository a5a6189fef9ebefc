//! `platen up` on a database file, in its own process, with its files in a temporary directory.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use platen_tests::{
    app::{Options, TestApp},
    deployment::DatabaseKind,
    process::Stopped,
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
        self.app.process.stop().await
    }
}
