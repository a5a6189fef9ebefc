//! The server under test: `platen up`, or `spin up` with a farm, on free ports with a new database.
//!
//! Invariant: a dropped server has been stopped and reaped, and its files are deleted.

mod platen_up;
mod spin;

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::sync::watch;

pub use self::platen_up::share_compiled;
use self::spin::Trigger;
use crate::{
    database::Database,
    deployment::{Deployment, Platform},
    metrics,
    process::Process,
    service::{DatabaseLocation, Service},
    settings::Settings,
    wait,
};

/// The token between the edge and its farm.
pub const FARM_TOKEN: &str = "the token of the stand-in farm";
/// The subdirectory of a server's files that contains the database file.
const DATA: &str = "data";

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    pub deployment: Deployment,
    /// The URL of the farm; `None` is a farm of the server alone: within `platen up`, beside Spin.
    pub farm_url: Option<String>,
    /// The deadline of a render in milliseconds; `None` is the default.
    pub deadline_ms: Option<u64>,
    /// More arguments: of `platen up`, or of the farm beside Spin.
    pub arguments: Vec<String>,
    /// A database that another server uses as well; `None` is a new one.
    pub database: Option<DatabaseLocation>,
    /// The limit of open files of `platen up`; `None` is that of the test.
    pub file_limit: Option<u64>,
    /// Whether permissions of files hold for `platen up` where root starts it as well.
    pub obeys_permissions: bool,
    /// The file of the certificates that `platen up` trusts; `None` is those of the system.
    pub trusted: Option<PathBuf>,
    /// How far the clock of `platen up` is ahead, by libfaketime of Debian's package `faketime`; `None` is the system's clock.
    pub clock_offset: Option<Duration>,
    /// Spin variables by name that differ from their defaults.
    pub variables: Vec<(&'static str, String)>,
}

impl Options {
    /// A server with a farm of one browser.
    pub fn own_farm(deployment: impl Into<Deployment>) -> Self {
        // Several servers run at the same time; one browser each is enough and starts fastest. On a slow machine jobs may wait
        // for long.
        let arguments = ["--browsers", "1", "--queue-timeout", "60"].map(str::to_owned).to_vec();
        Self {
            deployment: deployment.into(),
            farm_url: None,
            deadline_ms: None,
            arguments,
            database: None,
            file_limit: None,
            obeys_permissions: false,
            trusted: None,
            clock_offset: None,
            variables: Vec::new(),
        }
    }

    /// A server that sends its jobs to this URL.
    pub fn with_farm(deployment: impl Into<Deployment>, farm_url: String) -> Self {
        Self { farm_url: Some(farm_url), arguments: Vec::new(), ..Self::own_farm(deployment) }
    }

    pub fn deadline_ms(self, deadline_ms: u64) -> Self {
        Self { deadline_ms: Some(deadline_ms), ..self }
    }

    /// Sets a Spin variable to another value.
    pub fn variable(mut self, name: &'static str, value: u32) -> Self {
        self.variables.push((name, value.to_string()));
        self
    }

    /// Lets the server claim attempts ahead, for this time.
    pub fn claim_ahead(self, seconds: u32) -> Self {
        match self.deployment.platform {
            Platform::PlatenUp => self.arguments(&["--claim-ahead", &seconds.to_string()]),
            Platform::Spin => self.variable("claim_ahead", seconds),
        }
    }

    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    /// Adds a name that it resolves to 127.0.0.1.
    pub fn resolving(mut self, host: &str) -> Self {
        self.arguments.extend(["--resolve".to_owned(), format!("{host}=127.0.0.1")]);
        self
    }

    /// The Spin variables that differ from their defaults, as environment variables.
    fn environment(&self) -> Vec<(String, String)> {
        let deadline = self.deadline_ms.map(|deadline| ("deadline_ms", deadline.to_string()));
        let variables = deadline.into_iter().chain(self.variables.iter().cloned());
        variables
            .map(|(name, value)| (format!("SPIN_VARIABLE_{}", name.to_ascii_uppercase()), value))
            .collect()
    }
}

/// What a platform has started; see the fields of [`TestApp`].
struct Running {
    process: Process,
    trigger: Option<Trigger>,
    farm: Option<Process>,
    base_url: String,
    metrics_url: Option<String>,
}

#[derive(Debug)]
pub struct TestApp {
    // Fields are dropped in this order: the server before what it uses.
    /// The process of `platen up` or `spin up`.
    pub process: Process,
    /// The process of Spin that serves requests.
    trigger: Option<Trigger>,
    /// The farm if it is a process besides the server.
    farm: Option<Process>,
    pub database: Database,
    service: Arc<Service>,
    /// `None` on Spin with a stand-in farm: Spin has no metrics.
    metrics_url: Option<String>,
    http: reqwest::Client,
    directory: TempDir,
}

impl TestApp {
    /// Starts a server with its files below `parent`.
    pub async fn start(
        options: &Options,
        settings: &Settings,
        http: &reqwest::Client,
        parent: &Path,
    ) -> Result<Self> {
        let platen = &settings.platen;
        ensure!(platen.exists(), "{} does not exist: build it, or set PLATEN_BIN", platen.display());
        let directory = TempDir::with_prefix_in("app-", parent)?;
        let data = directory.path().join(DATA);
        let file = data.join(match options.deployment.platform {
            Platform::PlatenUp => platen_up::DATABASE_FILE,
            Platform::Spin => spin::DATABASE_FILE,
        });
        let database = match &options.database {
            Some(location) => Database::existing(location.clone()),
            None => Database::start(options.deployment.database, settings, directory.path(), &file).await?,
        };
        let Running { process, trigger, farm, base_url, metrics_url } = match options.deployment.platform {
            Platform::PlatenUp => platen_up::start(options, settings, &database, &data, parent).await?,
            Platform::Spin => spin::start(options, settings, &database, &data, parent).await?,
        };
        let service = Service::new(base_url, platen, database.location().clone(), http.clone());
        let (service, http) = (Arc::new(service), http.clone());
        Ok(Self { process, trigger, farm, database, service, metrics_url, http, directory })
    }

    pub fn service(&self) -> Arc<Service> {
        Arc::clone(&self.service)
    }

    /// The number of the process that serves requests.
    pub fn server_pid(&self) -> u32 {
        self.trigger.as_ref().map_or_else(|| self.process.pid(), Trigger::pid)
    }

    /// The process of its farm, which is that of `platen up` itself.
    pub fn farm_process(&self) -> &Process {
        self.farm.as_ref().unwrap_or(&self.process)
    }

    /// Whether its farm is a process besides the server.
    pub fn has_farm_process(&self) -> bool {
        self.farm.is_some()
    }

    /// Kills the process of its farm (SIGKILL).
    pub async fn kill_farm(&mut self) -> Result<()> {
        let farm = self.farm.as_mut().unwrap_or(&mut self.process);
        farm.signal(Signal::SIGKILL)?;
        farm.ended().await?;
        Ok(())
    }

    /// The logs of its processes as they grow.
    pub fn follow_logs(&self) -> Vec<watch::Receiver<String>> {
        let processes = self.farm.iter().chain([&self.process]);
        processes.map(Process::follow_log).collect()
    }

    /// The URL of the metrics of `platen up`, or of the farm beside Spin.
    pub fn metrics_url(&self) -> Result<&str> {
        self.metrics_url.as_deref().context("Spin has no metrics")
    }

    /// The value of a metric, see [`metrics::read`].
    pub async fn metric(&self, name: &str) -> Result<u64> {
        let value = metrics::read(&self.http, self.metrics_url()?, FARM_TOKEN, name).await?;
        value.with_context(|| format!("no metric {name}"))
    }

    pub async fn until_metric(&self, name: &str, value: u64) -> Result<()> {
        metrics::until(&self.http, self.metrics_url()?, FARM_TOKEN, name, value).await
    }

    /// Waits until a metric has at least this value.
    pub async fn until_metric_is_at_least(&self, name: &str, value: u64) -> Result<()> {
        wait::until_true(
            &format!("{name} is {value} or more"),
            async || Ok(self.metric(name).await? >= value),
        )
        .await
    }

    /// The directory that contains its database file.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.path().join(DATA)
    }
}

impl Deref for TestApp {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}
