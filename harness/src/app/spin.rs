//! `spin up` with Spin's defaults, and a farm beside it.
//!
//! `spin up` starts a second process, the trigger, which serves requests. Spin's state, logs and temporary files are in
//! the data directory of the server. The compiled components are cached in `parent`, for all servers of a run.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;

use super::{FARM_TOKEN, Options, Running};
use crate::{
    database::Database,
    farm_process,
    process::{Process, rest_of_line},
    procfs::{self, ProcessId},
    service::DatabaseLocation,
    settings::{Settings, tests_dir},
    wait::MAX_WAIT,
};

/// The name of the file of the database `default` in Spin's state directory.
pub(super) const DATABASE_FILE: &str = "sqlite_db.db";

/// The process of Spin that serves requests. `spin up` stops it on SIGTERM, but a killed `spin up` leaves it behind.
#[derive(Debug)]
pub(super) struct Trigger(ProcessId);

impl Trigger {
    pub(super) fn pid(&self) -> u32 {
        self.0.pid
    }
}

/// Dropped after `spin up` has ended, which ends the trigger.
impl Drop for Trigger {
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.0.is_alive() && begun.elapsed() < MAX_WAIT {
            let _ = self.0.signal(Signal::SIGKILL);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

pub(super) async fn start(
    options: &Options,
    settings: &Settings,
    database: &Database,
    state: &Path,
    parent: &Path,
) -> Result<Running> {
    let spin = settings.spin.as_deref().context("set PLATEN_SPIN to the path of Spin's binary")?;
    ensure!(
        options.farm_url.is_none() || options.arguments.is_empty(),
        "{:?} are arguments of a farm, and none is started",
        options.arguments
    );
    fs::create_dir_all(state)?;
    // Spin does not migrate the database.
    let location = database.location();
    location.operator(&settings.platen).run(&["migrate"]).await?;
    let (farm, farm_url) = if let Some(url) = &options.farm_url {
        (None, url.clone())
    } else {
        let command = farm_process::command(settings, parent, &options.arguments);
        let (farm, address) = farm_process::start(command, FARM_TOKEN, None).await?;
        (Some(farm), format!("http://{address}"))
    };

    let mut command = Command::new(spin);
    command.arg("up").arg("--from").arg(tests_dir().join("../spin.toml"));
    command.args(["--listen", "127.0.0.1:0", "--state-dir"]).arg(state);
    let cache = state.join("wasmtime.toml");
    fs::write(&cache, format!("[cache]\ndirectory = '{}'\n", parent.join("wasmtime-cache").display()))?;
    command.arg("--cache").arg(cache).env("TMPDIR", state);
    if location.url().is_some() {
        let configuration = state.join("runtime-config.toml");
        fs::write(&configuration, runtime_configuration(location))?;
        command.arg("--runtime-config-file").arg(configuration);
    }
    command.env("SPIN_VARIABLE_FARM_URL", &farm_url).env("SPIN_VARIABLE_FARM_TOKEN", FARM_TOKEN);
    command.envs(options.environment());
    let process = Process::start("spin up", &command, Signal::SIGTERM)?;
    let base_url = process.wait_for(|log| rest_of_line(log, "Serving ")).await?;
    let below = procfs::descendants(process.pid());
    ensure!(below.len() == 1, "not one process below spin up: {below:?}");
    let trigger = below.into_iter().next().map(Trigger);
    let metrics_url = farm.is_some().then(|| format!("{farm_url}/metrics"));
    Ok(Running { process, trigger, farm, base_url, metrics_url })
}

fn runtime_configuration(database: &DatabaseLocation) -> String {
    // Spin requires a token even where the server does not.
    let token = database.token.as_deref().unwrap_or("none");
    let url = &database.address;
    format!("[sqlite_database.default]\ntype = 'libsql'\nurl = '{url}'\ntoken = '{token}'\n")
}
