//! `platen up`, with its farm in the same process.

use std::{
    fs::DirBuilder,
    os::unix::fs::{DirBuilderExt as _, symlink},
    path::Path,
    process::Command,
};

use anyhow::Result;
use nix::{sys::signal::Signal, unistd::Uid};

use super::{FARM_TOKEN, Options, Running};
use crate::{
    database::Database,
    process::{Process, rest_of_line},
    settings::{Settings, built_components},
};

/// The name of its database file.
pub(super) const DATABASE_FILE: &str = "platen.db";

pub(super) async fn start(
    options: &Options,
    settings: &Settings,
    database: &Database,
    data: &Path,
    parent: &Path,
) -> Result<Running> {
    share_compiled(data)?;
    let mut command = Command::new("env");
    if let Some(limit) = options.file_limit {
        command.arg("prlimit").arg(format!("--nofile={limit}"));
    }
    if options.obeys_permissions && Uid::effective().is_root() {
        command.args(["setpriv", "--bounding-set=-dac_override"]);
    }
    command.arg(&settings.platen).arg("up").arg("--data").arg(data);
    let location = database.location();
    if let Some(url) = location.url() {
        command.args(["--db", url]).envs(location.token.iter().map(|token| ("PLATEN_DB_TOKEN", token)));
    } else if options.database.is_some() {
        command.args(["--db", &location.address]);
    }
    command.args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    command.arg("--components").arg(&settings.components).args(&options.arguments);
    if let Some(url) = &options.farm_url {
        command.args(["--farm-url", url]).env("PLATEN_FARM_TOKEN", FARM_TOKEN);
    }
    command.envs(options.trusted.iter().map(|file| ("SSL_CERT_FILE", file)));
    if let Some(offset) = options.clock_offset {
        // The dynamic linker replaces `$LIB`.
        command.env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketimeMT.so.1");
        command.env("FAKETIME", format!("+{}", offset.as_secs())).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    // A killed server leaves the profiles of its browsers.
    command.env("TMPDIR", parent).envs(options.environment());
    // SIGTERM, so that it closes its browsers and deletes their profiles.
    let process = Process::start("platen up", &command, Signal::SIGTERM)?;
    let url = |log: &str, text: &str| Some(rest_of_line(log, text)?.trim_end_matches('/').to_owned());
    let base_url = process.wait_for(|log| url(log, "platen is listening on ")).await?;
    let metrics_url = process.wait_for(|log| url(log, "metrics on ")).await?;
    Ok(Running { process, trigger: None, farm: None, base_url, metrics_url: Some(metrics_url) })
}

/// Gives the server with these files the compiled components of all servers of tests. To compile them takes 17 s of CPU time.
///
/// # Errors
/// A directory or a link cannot be made.
pub fn share_compiled(data: &Path) -> Result<()> {
    let (shared, own) = (built_components().join("compiled"), data.join("cache"));
    for directory in [&*shared, data] {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    if !own.exists() {
        symlink(shared, own)?;
    }
    Ok(())
}
