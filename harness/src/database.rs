//! The databases that the suite runs on: a file, and a libSQL server without and with tokens.
//!
//! Invariant: a [`Database`] is empty when it is created. A libSQL server is deleted when it is dropped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nix::sys::signal::Signal;
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::json;
use tempfile::TempDir;

pub use crate::deployment::DatabaseKind;
use crate::{process::Process, procfs, service::DatabaseLocation, settings::Settings};

#[derive(Debug)]
pub struct Database {
    location: DatabaseLocation,
    /// `None` for a file, which is created by its first user.
    server: Option<LibsqlServer>,
}

#[derive(Debug)]
pub struct LibsqlServer {
    // Dropped before its directory.
    process: Process,
    sqld: PathBuf,
    port: u16,
    directory: TempDir,
}

impl Database {
    /// Creates a database: `file`, or a libSQL server with its files below `parent`.
    pub async fn start(kind: DatabaseKind, settings: &Settings, parent: &Path, file: &Path) -> Result<Self> {
        let credentials = match kind {
            DatabaseKind::File => {
                let address = file.to_str().context("the path of the database is not UTF-8")?.to_owned();
                return Ok(Self { location: DatabaseLocation { address, token: None }, server: None });
            }
            DatabaseKind::Sqld => None,
            DatabaseKind::SqldJwt => Some(Credentials::generate()?),
        };
        let sqld = settings.sqld.as_deref().context(
            "sqld is missing: run scripts/test, which installs it, or set PLATEN_SQLD to a libSQL server \
             binary, or skip these cases with PLATEN_TEST_DATABASES=file",
        )?;
        let (server, address) = LibsqlServer::start(sqld, credentials.as_ref(), parent).await?;
        let token = credentials.map(|credentials| credentials.token);
        Ok(Self { location: DatabaseLocation { address, token }, server: Some(server) })
    }

    /// A database that another value keeps.
    pub fn existing(location: DatabaseLocation) -> Self {
        Self { location, server: None }
    }

    pub fn location(&self) -> &DatabaseLocation {
        &self.location
    }

    /// The process of a libSQL server.
    pub fn server_pid(&self) -> Option<u32> {
        self.server.as_ref().map(|server| server.process.pid())
    }

    /// Stops (SIGSTOP) or continues (SIGCONT) a libSQL server. No effect on a file.
    pub fn pause(&self, paused: bool) -> Result<()> {
        let Some(server) = &self.server else { return Ok(()) };
        server.process.signal(if paused { Signal::SIGSTOP } else { Signal::SIGCONT })?;
        // Threads execute the signal when they are scheduled next.
        while paused && !procfs::is_stopped(server.process.pid()) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Kills a libSQL server (SIGKILL). No effect on a file.
    pub async fn kill(&mut self) -> Result<()> {
        if let Some(server) = &mut self.server {
            server.process.signal(Signal::SIGKILL)?;
            server.process.ended().await?;
        }
        Ok(())
    }

    /// Starts a killed libSQL server again, on the same port. No effect on a file.
    pub async fn start_again(&mut self) -> Result<()> {
        if let Some(server) = &mut self.server {
            let started = LibsqlServer::run(&server.sqld, server.directory.path(), server.port).await?;
            (server.process, _) = started;
        }
        Ok(())
    }
}

const PUBLIC_KEY: &str = "public-key";

impl LibsqlServer {
    /// A server and its URL.
    async fn start(sqld: &Path, credentials: Option<&Credentials>, parent: &Path) -> Result<(Self, String)> {
        let directory = TempDir::with_prefix_in("sqld-", parent)?;
        if let Some(credentials) = credentials {
            fs::write(directory.path().join(PUBLIC_KEY), &credentials.public_key)?;
        }
        let (process, port) = Self::run(sqld, directory.path(), 0).await?;
        Ok((Self { process, sqld: sqld.to_owned(), port, directory }, format!("http://127.0.0.1:{port}")))
    }

    /// The process and its port.
    async fn run(sqld: &Path, directory: &Path, port: u16) -> Result<(Process, u16)> {
        let mut command = Command::new(sqld);
        command.current_dir(directory).env("RUST_LOG", "info");
        // The interval is that of docs/operating.md.
        command
            .args(["--db-path", "data", "--no-welcome", "--checkpoint-interval-s", "10"])
            .args(["--http-listen-addr", &format!("127.0.0.1:{port}")]);
        let needs_token = directory.join(PUBLIC_KEY).exists();
        if needs_token {
            command.args(["--auth-jwt-key-file", PUBLIC_KEY]);
        }
        let process = Process::start("sqld", &command, Signal::SIGKILL)?;
        // It does not log its port; the kernel has it.
        let port = process.wait_until(|| Some(procfs::listening(process.pid()).first()?.port())).await?;
        let statement = reqwest::Client::new().post(format!("http://127.0.0.1:{port}/v2/pipeline"));
        let answer = statement.json(&json!({ "requests": [] })).send().await?.status();
        let expected = if needs_token { 401 } else { 200 };
        ensure!(answer == expected, "sqld answers {answer} without a token");
        Ok((process, port))
    }
}

/// The public key for the server and a token for its client.
#[derive(Debug)]
struct Credentials {
    /// The public key as sqld's `--auth-jwt-key-file` takes it: URL-safe base64.
    public_key: String,
    /// A token (RFC 7519) that allows reading and writing.
    token: String,
}

impl Credentials {
    /// Generates a key pair and signs a token with it.
    fn generate() -> Result<Self> {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| anyhow!("no randomness"))?;
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|error| anyhow!("{error}"))?;
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(r#"{"alg":"EdDSA","typ":"JWT"}"#), part(r#"{"a":"rw"}"#));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
        Ok(Self {
            public_key: URL_SAFE_NO_PAD.encode(pair.public_key()),
            token: format!("{signed}.{signature}"),
        })
    }
}
