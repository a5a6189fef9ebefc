//! The two sides: the farm as it is, and the same farm with a browser that draws by itself.
//!
//! Invariant: a side that is dropped has ended with its browsers.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use nix::sys::signal::Signal;
use platen_shared::{job::RenderJob, wire};
use platen_tests::process::Process;
use tempfile::TempDir;

use super::{Corpus, server};
use crate::compare::{open_directory, target::address_after};

const TOKEN: &str = "the token of the corpus";
/// Far beyond any job: it only keeps a farm that hangs from hanging the run.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);

/// A running side.
pub(super) struct Farm {
    http: reqwest::Client,
    url: String,
    process: Process,
    _directory: TempDir,
}

impl Farm {
    /// The farm under test.
    pub(super) async fn subject(corpus: &Corpus) -> Result<Self> {
        let directory = open_directory()?;
        let chromium = corpus.options.chromium.clone();
        Self::start("subject", corpus, directory, &chromium).await
    }

    /// The same farm with a browser that draws when it likes to, in real time.
    pub(super) async fn reference(corpus: &Corpus) -> Result<Self> {
        let directory = open_directory()?;
        let chromium = drawing_by_itself(&corpus.options.chromium, directory.path())?;
        Self::start("reference", corpus, directory, &chromium).await
    }

    async fn start(name: &str, corpus: &Corpus, directory: TempDir, chromium: &Path) -> Result<Self> {
        let mut command = Command::new(&corpus.farm);
        command.args(["--listen", "127.0.0.1:0", "--resolve"]).arg(format!("{}=127.0.0.1", server::HOST));
        command.args(["--browsers", &corpus.options.concurrency.to_string()]);
        // No server listens there, so what packages' own documents request from other hosts stays here.
        command.args(["--dns", "127.0.0.1:9"]);
        // Some pages fetch several hundred modules.
        command.args(["--egress-connections", "4096", "--log", "warn,platen_farm=info,egress=off"]);
        command.env("PLATEN_FARM_TOKEN", TOKEN).env("PLATEN_CHROMIUM", chromium);
        command.env("TMPDIR", directory.path());
        let process = Process::start(name, &command, Signal::SIGTERM)?;
        let address = process.wait_for(|log| address_after(log, "listening address=")).await?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("http://{address}{}", wire::JOBS_PATH);
        Ok(Self { http, url, process, _directory: directory })
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// One job and its file.
    pub(super) async fn render(&self, job: &RenderJob) -> Result<Bytes> {
        let request = self.http.post(&self.url).bearer_auth(TOKEN).timeout(ANSWER_TIMEOUT).json(job);
        let answer = request.send().await.context("no answer")?;
        let status = answer.status();
        let body = answer.bytes().await.context("the answer breaks off")?;
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body[..body.len().min(200)]));
        }
        ensure!(!body.is_empty(), "an empty file");
        Ok(body)
    }
}

/// The browser without what makes it draw on demand.
fn drawing_by_itself(chromium: &Path, directory: &Path) -> Result<PathBuf> {
    let chromium = chromium.to_str().context("a UTF-8 path")?.replace('\'', r"'\''");
    let script = format!(
        "#!/bin/sh\n\
         for a; do shift; [ \"$a\" = --enable-begin-frame-control ] || set -- \"$@\" \"$a\"; done\n\
         exec '{chromium}' \"$@\"\n"
    );
    let path = directory.join("chromium");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
