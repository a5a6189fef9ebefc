//! `platen-farm` as a process.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use crate::{
    process::{Process, rest_of_line},
    settings::Settings,
};

/// Starts a farm with this token and its browsers' profiles below `parent`, on a free port if no address is given. The
/// result contains where it listens.
pub async fn start(
    settings: &Settings,
    token: &str,
    parent: &Path,
    address: Option<SocketAddr>,
    arguments: &[String],
) -> Result<(Process, SocketAddr)> {
    let program = settings.platen.with_file_name("platen-farm");
    ensure!(program.exists(), "{} does not exist: build it", program.display());
    let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut command = Command::new(program);
    command.args(["--listen", &address.to_string()]).args(arguments);
    command.env("PLATEN_FARM_TOKEN", token).env("TMPDIR", parent);
    let farm = Process::start("platen-farm", &command, Signal::SIGTERM)?;
    let address = farm.wait_for(|log| rest_of_line(log, "listening address=")).await?.parse()?;
    Ok((farm, address))
}
