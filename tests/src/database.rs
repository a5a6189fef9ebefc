//! The databases the suite runs on: a file, and a real libSQL server without and with tokens.
//!
//! Invariant: every [`Database`] is empty when it is made and gone when it is dropped.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::{jwt::Credentials, process::Process, procfs, settings::Settings};

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DatabaseKind {
    /// A SQLite-format file under the server's data directory.
    File,
    /// `sqld`, open to everybody who reaches it.
    Sqld,
    /// `sqld` that asks for a signed token.
    SqldJwt,
}

impl DatabaseKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::File, Self::Sqld, Self::SqldJwt];

    /// Its name in the report and in `PLATEN_TEST_DATABASES`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Sqld => "sqld",
            Self::SqldJwt => "sqld-jwt",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// A database of its own.
#[derive(Debug)]
pub enum Database {
    /// The server's own file; nothing to start.
    File,
    /// A running libSQL server.
    Server(Box<LibsqlServer>),
}

/// A running libSQL server.
#[derive(Debug)]
pub struct LibsqlServer {
    /// Killed before its directory goes.
    process: Process,
    url: String,
    token: Option<String>,
    _directory: TempDir,
}

impl Database {
    /// Makes a database below `parent`.
    ///
    /// # Errors
    /// When there is no `sqld` or it does not start; the error names the cure.
    pub async fn start(kind: DatabaseKind, settings: &Settings, parent: &Path) -> Result<Self> {
        let credentials = match kind {
            DatabaseKind::File => return Ok(Self::File),
            DatabaseKind::Sqld => None,
            DatabaseKind::SqldJwt => Some(Credentials::generate()?),
        };
        let sqld = settings.sqld.as_deref().context(
            "no sqld: run the suite through scripts/test, which installs it, or set PLATEN_SQLD to a \
             libSQL server binary, or leave these cases out with PLATEN_TEST_DATABASES=file",
        )?;
        Ok(Self::Server(Box::new(LibsqlServer::start(sqld, credentials, parent).await?)))
    }

    /// The `--db` of it; `None` is the server's default, a file.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Server(server) => Some(&server.url),
        }
    }

    /// The token it asks for.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Server(server) => server.token.as_deref(),
        }
    }

    /// Holds a libSQL server still, or lets it go on. Nothing for a file.
    ///
    /// # Errors
    /// When it is gone.
    pub fn hold(&self, still: bool) -> Result<()> {
        match self {
            Self::File => Ok(()),
            Self::Server(server) => {
                server.process.signal(if still { Signal::SIGSTOP } else { Signal::SIGCONT })
            }
        }
    }

    /// Takes a libSQL server down at once, as a crash would. Nothing for a file.
    ///
    /// # Errors
    /// When it cannot be killed.
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
        // It does not tell which port it was given; the kernel does.
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

    /// Statuses of one statement without and with the token. Skipped where there is no sqld.
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
    async fn sqld_with_tokens_wants_ours() {
        assert!(matches!(statuses(DatabaseKind::SqldJwt).await, None | Some((401, 200))));
    }
}
