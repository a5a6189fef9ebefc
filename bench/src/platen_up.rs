//! `platen up` on a fixed address, which can be killed and started again, and callers that send one request after the
//! other.

use std::{
    collections::BTreeMap,
    fmt,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use nix::sys::signal::Signal;
use platen_tests::{
    app::FARM_TOKEN,
    client::Target,
    process::{Process, rest_of_line},
    service::{DatabaseLocation, Service},
    settings::Settings,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// Longer than any response of the edge takes.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Before a caller whose connection failed sends its next request.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct PlatenUp {
    settings: Settings,
    address: SocketAddr,
    data: PathBuf,
    database: DatabaseLocation,
    farm_url: String,
    pub(crate) process: Process,
    pub(crate) service: Service,
}

impl PlatenUp {
    pub(crate) async fn start(data: &Path, database: DatabaseLocation, farm_url: String) -> Result<Self> {
        let settings = Settings::from_env()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let service = Service::new(format!("http://{address}"), &settings.platen, database.clone(), http);
        let process = run(&settings, address, data, &database, &farm_url).await?;
        Ok(Self { settings, address, data: data.to_owned(), database, farm_url, process, service })
    }

    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.process.signal(Signal::SIGKILL)?;
        self.process.ended().await?;
        Ok(())
    }

    pub(crate) async fn start_again(&mut self) -> Result<()> {
        self.process = run(&self.settings, self.address, &self.data, &self.database, &self.farm_url).await?;
        Ok(())
    }
}

async fn run(
    settings: &Settings,
    address: SocketAddr,
    data: &Path,
    database: &DatabaseLocation,
    farm_url: &str,
) -> Result<Process> {
    let mut command = Command::new(&settings.platen);
    command.arg("up").arg("--data").arg(data).args(["--db", &database.address]);
    command.args(["--listen", &address.to_string(), "--farm-url", farm_url, "--manifest"]);
    command.arg(&settings.manifest).env("PLATEN_FARM_TOKEN", FARM_TOKEN);
    let process = Process::start("platen up", &command, Signal::SIGTERM)?;
    process.wait_for(|log| rest_of_line(log, "platen is listening on ")).await?;
    Ok(process)
}

/// The responses to a series of requests.
#[derive(Default)]
pub(crate) struct Responses {
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests without a response.
    pub(crate) none: u64,
    /// Of each response.
    pub(crate) latencies: Vec<Duration>,
    /// When each file arrived.
    pub(crate) files: Vec<Instant>,
}

impl Responses {
    pub(crate) fn of(&self, statuses: &[u16]) -> u64 {
        statuses.iter().filter_map(|status| self.by_status.get(status)).sum()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.by_status.values().sum::<u64>() + self.none
    }

    /// Sends one request.
    pub(crate) async fn send(&mut self, target: &Target) {
        let began = Instant::now();
        let answer = timeout(RESPONSE_TIMEOUT, target.render(&json!({ "html": "x" })).send()).await;
        let Ok(Ok(answer)) = answer else {
            self.none += 1;
            return sleep(RECONNECT_INTERVAL).await;
        };
        self.latencies.push(began.elapsed());
        *self.by_status.entry(answer.status).or_default() += 1;
        if answer.status == 200 {
            self.files.push(Instant::now());
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (status, number) in other.by_status {
            *self.by_status.entry(status).or_default() += number;
        }
        self.none += other.none;
        self.latencies.extend(other.latencies);
        self.files.extend(other.files);
    }
}

impl fmt::Display for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses = self.by_status.iter().map(|(status, number)| format!("{number} × {status}"));
        let none = (self.none > 0).then(|| format!("{} without a response", self.none));
        f.write_str(&statuses.chain(none).collect::<Vec<_>>().join(", "))
    }
}

/// Callers that send requests until they are stopped.
pub(crate) struct Callers {
    stop: Arc<AtomicBool>,
    callers: JoinSet<Responses>,
}

impl Callers {
    /// The targets are used in turn.
    pub(crate) fn start(targets: &[Target], callers: usize) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let run = |caller: usize| {
            let (stop, targets) = (Arc::clone(&stop), targets.to_vec());
            async move {
                let (mut responses, mut number) = (Responses::default(), caller);
                while !stop.load(Ordering::Relaxed) {
                    responses.send(&targets[number % targets.len()]).await;
                    number += 1;
                }
                responses
            }
        };
        let callers = (0..callers).map(run).collect();
        Self { stop, callers }
    }

    pub(crate) async fn finish(mut self) -> Result<Responses> {
        self.stop.store(true, Ordering::Relaxed);
        let mut responses = Responses::default();
        while let Some(caller) = self.callers.join_next().await {
            responses.add(caller?);
        }
        Ok(responses)
    }
}
