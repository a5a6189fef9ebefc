//! The databases that the suite runs on: a file, and a libSQL server without and with tokens.
//!
//! Invariant: a [`Database`] is empty when it is created, and deleted when it is dropped.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

pub use crate::settings::DatabaseKind;
use crate::{jwt::Credentials, process::Process, procfs, settings::Settings};

/// A database for one server.
#[derive(Debug)]
pub enum Database {
    /// A file that the server under test creates.
    File,
    /// A running libSQL server.
    Server(Box<LibsqlServer>),
}

/// A running libSQL server.
#[derive(Debug)]
pub struct LibsqlServer {
    // Dropped before its directory.
    process: Process,
    url: String,
    token: Option<String>,
    _directory: TempDir,
}

impl Database {
    /// Creates a database below `parent`.
    pub async fn start(kind: DatabaseKind, settings: &Settings, parent: &Path) -> Result<Self> {
        let credentials = match kind {
            DatabaseKind::File => return Ok(Self::File),
            DatabaseKind::Sqld => None,
            DatabaseKind::SqldJwt => Some(Credentials::generate()?),
        };
        let sqld = settings.sqld.as_deref().context(
            "sqld is missing: run scripts/test, which installs it, or set PLATEN_SQLD to a libSQL server \
             binary, or skip these cases with PLATEN_TEST_DATABASES=file",
        )?;
        Ok(Self::Server(Box::new(LibsqlServer::start(sqld, credentials, parent).await?)))
    }

    /// Its `--db`; `None` is the default, a file.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Server(server) => Some(&server.url),
        }
    }

    /// The token that it requires.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Server(server) => server.token.as_deref(),
        }
    }

    /// Stops (SIGSTOP) or continues (SIGCONT) a libSQL server. No effect on a file.
    pub fn pause(&self, paused: bool) -> Result<()> {
        match self {
            Self::File => Ok(()),
            Self::Server(server) => {
                server.process.signal(if paused { Signal::SIGSTOP } else { Signal::SIGCONT })
            }
        }
    }

    /// Kills a libSQL server (SIGKILL). No effect on a file.
    pub async fn kill(&mut self) -> Result<()> {
        if let Self::Server(server) = self {
            server.process.signal(Signal::SIGKILL)?;
            server.process.ended().await?;
        }
        Ok(())
    }
}

impl LibsqlServer {
    async fn start(sqld: &Path, credentials: Option<Credentials>, parent: &Path) -> Result<Self> {
        let directory = TempDir::with_prefix_in("sqld-", parent)?;
        let mut command = Command::new(sqld);
        command.current_dir(&directory).env("RUST_LOG", "info");
        command.args(["--db-path", "data", "--http-listen-addr", "127.0.0.1:0", "--no-welcome"]);
        if let Some(credentials) = &credentials {
            fs::write(directory.path().join("public-key"), &credentials.public_key)?;
            command.args(["--auth-jwt-key-file", "public-key"]);
        }
        let process = Process::start("sqld", &command, Signal::SIGKILL)?;
        // It does not log its port; the kernel has it.
        let port = process.wait_until(|| Some(procfs::listening(process.pid()).first()?.port())).await?;
        let url = format!("http://127.0.0.1:{port}");
        let health = reqwest::get(format!("{url}/health")).await?;
        ensure!(health.status().is_success(), "sqld answers {}", health.status());
        Ok(Self { process, url, token: credentials.map(|it| it.token), _directory: directory })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Statuses of one statement without and with the token; `None` without sqld.
    async fn statuses(kind: DatabaseKind) -> Option<(u16, u16)> {
        let settings = Settings::from_env().unwrap();
        settings.sqld.as_ref()?;
        let parent = TempDir::new().unwrap();
        let database = Database::start(kind, &settings, parent.path()).await.unwrap();
        let ask = async |token: Option<&str>| {
            let url = format!("{}/v2/pipeline", database.url().unwrap());
            let body = json!({"requests": [{"type": "execute", "stmt": {"sql": "SELECT 1"}}]});
            let request = reqwest::Client::new().post(url).json(&body);
            let request = if let Some(token) = token { request.bearer_auth(token) } else { request };
            request.send().await.unwrap().status().as_u16()
        };
        Some((ask(None).await, ask(database.token()).await))
    }

    #[tokio::test]
    async fn sqld_answers() {
        assert!(matches!(statuses(DatabaseKind::Sqld).await, None | Some((200, 200))));
    }

    #[tokio::test]
    async fn sqld_with_tokens_requires_one() {
        assert!(matches!(statuses(DatabaseKind::SqldJwt).await, None | Some((401, 200))));
    }
}
