//! The faults, one at each interval.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use platen_harness::{
    app::FARM_TOKEN,
    farm_process,
    process::{Process, Stopped},
    procfs::{self, ProcessId},
    settings::Settings,
};
use rand::{RngExt as _, rngs::StdRng};
use tokio::time::sleep;

use crate::server::BROWSERS;

/// How long a stopped process is stopped, in milliseconds.
const STOP_MS: std::ops::Range<u64> = 500..4_000;

/// A farm in a process of its own, on a port that it keeps.
pub(super) struct FarmProcess {
    process: Process,
    arguments: Vec<String>,
    address: SocketAddr,
}

impl FarmProcess {
    pub(super) async fn start(arguments: Vec<String>, address: SocketAddr) -> Result<Self> {
        let process = start_farm(&arguments, address).await?;
        Ok(Self { process, arguments, address })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(super) async fn stop(mut self) -> Result<Stopped> {
        self.process.stop().await
    }
}

async fn start_farm(arguments: &[String], address: SocketAddr) -> Result<Process> {
    let command = farm_process::command(&Settings::from_env()?, &std::env::temp_dir(), arguments);
    Ok(farm_process::start(command, FARM_TOKEN, Some(address)).await?.0)
}

/// A fault that was injected.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) name: String,
    pub(super) from: Instant,
    pub(super) until: Instant,
    /// How many jobs may fail because of it. A browser has one job at a time.
    pub(super) jobs: usize,
}

/// A part of a browser.
#[derive(Debug, Clone, Copy)]
enum Part {
    Renderer,
    Gpu,
    Network,
    Browser,
}

impl Part {
    const ALL: [Self; 4] = [Self::Renderer, Self::Gpu, Self::Network, Self::Browser];

    fn name(self) -> &'static str {
        match self {
            Self::Renderer => "renderer",
            Self::Gpu => "GPU process",
            Self::Network => "network service",
            Self::Browser => "browser",
        }
    }

    fn is(self, command: &str) -> bool {
        match self {
            Self::Renderer => command.contains("--type=renderer"),
            Self::Gpu => command.contains("--type=gpu-process"),
            Self::Network => command.contains("network.mojom.NetworkService"),
            Self::Browser => command.contains("--user-data-dir=") && !command.contains("--type="),
        }
    }

    fn choose(self, root: u32, random: &mut StdRng) -> Option<ProcessId> {
        let mut found: Vec<_> =
            procfs::descendants(root).into_iter().filter(|it| self.is(&it.command_line())).collect();
        (!found.is_empty()).then(|| found.swap_remove(random.random_range(0..found.len())))
    }
}

/// What injects faults.
pub(super) struct Injector {
    pub(super) random: StdRng,
    pub(super) interval: Duration,
    /// The process whose browsers are hit, unless the farm has one of its own.
    pub(super) server_pid: u32,
    pub(super) farm: Option<FarmProcess>,
    /// Makes the load send a hostile page.
    pub(super) hostile: Arc<AtomicBool>,
    /// Makes the load cut a connection.
    pub(super) cut: Arc<AtomicBool>,
}

impl Injector {
    /// Injects faults until this instant, and returns them with the farm.
    pub(super) async fn run(mut self, until: Instant) -> Result<(Vec<Fault>, Option<FarmProcess>)> {
        let mut faults = Vec::new();
        while until.saturating_duration_since(Instant::now()) > self.interval {
            sleep(self.interval).await;
            let started = Instant::now();
            if let Some((name, jobs)) = self.inject().await? {
                faults.push(Fault { name, from: started, until: Instant::now(), jobs });
            }
        }
        Ok((faults, self.farm))
    }

    async fn inject(&mut self) -> Result<Option<(String, usize)>> {
        let kinds = if self.farm.is_some() { 8 } else { 7 };
        match self.random.random_range(0..kinds) {
            0..=4 => self.hit_browser().await,
            5 => {
                self.hostile.store(true, Ordering::SeqCst);
                Ok(Some(("hostile page".to_owned(), 0)))
            }
            6 => {
                self.cut.store(true, Ordering::SeqCst);
                Ok(Some(("cut connection".to_owned(), 0)))
            }
            _ => self.hit_farm().await,
        }
    }

    async fn hit_browser(&mut self) -> Result<Option<(String, usize)>> {
        let root = self.farm.as_ref().map_or(self.server_pid, FarmProcess::pid);
        let part = Part::ALL[self.random.random_range(0..Part::ALL.len())];
        let Some(process) = part.choose(root, &mut self.random) else { return Ok(None) };
        if self.random.random() {
            let _ = process.signal(Signal::SIGKILL);
            return Ok(Some((format!("{} killed", part.name()), 1)));
        }
        if process.signal(Signal::SIGSTOP).is_ok() {
            sleep(self.stop_time()).await;
            if process.is_alive() {
                let _ = process.signal(Signal::SIGCONT);
            }
        }
        Ok(Some((format!("{} stopped", part.name()), 1)))
    }

    async fn hit_farm(&mut self) -> Result<Option<(String, usize)>> {
        let stop_time = self.stop_time();
        let farm = self.farm.as_mut().context("no farm process")?;
        if self.random.random() {
            farm.process.signal(Signal::SIGSTOP)?;
            sleep(stop_time).await;
            farm.process.signal(Signal::SIGCONT)?;
            return Ok(Some(("farm stopped".to_owned(), BROWSERS)));
        }
        farm.process.signal(Signal::SIGKILL)?;
        farm.process.ended().await?;
        sleep(self.interval).await;
        farm.process = start_farm(&farm.arguments, farm.address).await?;
        Ok(Some(("farm killed".to_owned(), BROWSERS)))
    }

    fn stop_time(&mut self) -> Duration {
        Duration::from_millis(self.random.random_range(STOP_MS))
    }
}
