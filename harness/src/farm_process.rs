//! `platen-farm` as a process.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use crate::{
    loopback::ANY_PORT,
    process::{Process, rest_of_line},
    settings::Settings,
};

/// The command of the farm beside the `platen` under test, with its browsers' profiles below `parent`.
pub fn command(settings: &Settings, parent: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(settings.platen.with_file_name("platen-farm"));
    command.args(arguments).env("TMPDIR", parent);
    command
}

/// Starts a farm by a command to which its address, a free port if none is given, and its token are added. The result
/// contains where it listens.
pub async fn start(
    mut command: Command,
    token: &str,
    address: Option<SocketAddr>,
) -> Result<(Process, SocketAddr)> {
    let program = Path::new(command.get_program());
    ensure!(program.is_relative() || program.exists(), "{} does not exist: build it", program.display());
    command.args(["--listen", &address.unwrap_or(ANY_PORT).to_string()]).env("PLATEN_FARM_TOKEN", token);
    let farm = Process::start("platen-farm", &command, Signal::SIGTERM)?;
    let address = farm.wait_for(|log| rest_of_line(log, "listening address=")).await?.parse()?;
    Ok((farm, address))
}
