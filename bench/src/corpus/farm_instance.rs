//! The farm under test, and the reference: the same farm with a browser that renders in real time.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use platen_shared::job::RenderJob;
use tempfile::TempDir;

use super::{Corpus, file_server};
use crate::{compare::traversable_directory, farm::Farm, http_client};

/// A running farm.
pub(super) struct FarmInstance {
    farm: Farm,
    pub(super) is_reference: bool,
    _directory: TempDir,
}

impl FarmInstance {
    /// Starts the farm under test.
    pub(super) async fn start_under_test(corpus: &Corpus) -> Result<Self> {
        Self::start(false, corpus, traversable_directory()?, &corpus.options.chromium).await
    }

    /// Starts the farm with a browser that draws frames in real time, without begin-frame control.
    pub(super) async fn start_reference(corpus: &Corpus) -> Result<Self> {
        let directory = traversable_directory()?;
        let chromium = without_begin_frame_control(&corpus.options.chromium, directory.path())?;
        Self::start(true, corpus, directory, &chromium).await
    }

    async fn start(is_reference: bool, corpus: &Corpus, directory: TempDir, chromium: &Path) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?.with_file_name("platen-farm"));
        for host in [file_server::HOST, file_server::READER_HOST] {
            command.arg("--resolve").arg(format!("{host}=127.0.0.1"));
        }
        command.args(["--browsers", &corpus.options.concurrency.to_string()]);
        // No DNS server listens there, so other hosts that documents of packages refer to do not resolve.
        command.args(["--dns", "127.0.0.1:9"]);
        // Some pages fetch several hundred modules.
        command.args(["--egress-connections", "4096", "--log", "warn,platen_farm=info,egress=off"]);
        command.env("TMPDIR", directory.path());
        Ok(Self { farm: Farm::start(command, chromium).await?, is_reference, _directory: directory })
    }

    pub(super) fn pid(&self) -> u32 {
        self.farm.process.pid()
    }

    /// Runs one job and returns its file.
    pub(super) async fn render(&self, job: &RenderJob) -> Result<Bytes> {
        http_client::fetch_file(self.farm.request(job)).await
    }
}

/// Writes a script that starts Chromium without `--enable-begin-frame-control`.
fn without_begin_frame_control(chromium: &Path, directory: &Path) -> Result<PathBuf> {
    let chromium = chromium.to_str().context("the path of Chromium is not UTF-8")?.replace('\'', r"'\''");
    let script = format!(
        "#!/bin/sh\n\
         for a; do shift; [ \"$a\" = --run-all-compositor-stages-before-draw ] || set -- \"$@\" \"$a\"; done\n\
         exec '{chromium}' \"$@\"\n"
    );
    let path = directory.join("chromium");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
