//! `platen up`: the server.
//!
//! Invariant: when "platen is listening on" is printed, requests are answered. After SIGTERM, SIGINT or SIGHUP
//! the requests in flight end, within a timeout, before the farm is stopped. After a second signal they are aborted, and
//! the rows of their attempts are written.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::DirBuilder,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use clap::Args;
use platen_farm::{Farm, FarmToken, MetricsRegistry, Readiness, startup, telemetry};
use platen_shared::farm_address::FarmAddresses;
use rand::{Rng as _, TryRngCore as _, distr::Alphanumeric, rngs::OsRng};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::DatabaseArgs;
use crate::{
    db::{Database, Purpose, StatementMetrics},
    manifest::Manifest,
    metrics::Metrics,
    runtime::{self, Handler, InstanceDrain},
    server::{self, Health, Server, ServerLimits},
    variables::Variables,
};

/// From the second signal to the exit, for the rows of attempts.
const ABORT_TIME: Duration = Duration::from_secs(1);

/// What the help lists besides the flags.
fn environment() -> String {
    let mut text = String::from("Environment variables without a flag:");
    for variable in startup::SECRETS.iter().chain(startup::OF_COMPONENTS) {
        if !variable.used_by.contains("`up`") {
            continue;
        }
        // Without the links of documents.
        let description = variable.description.split("; ").next().unwrap_or_default();
        let _ = write!(text, "\n  {:<36}  {description}", variable.name);
        if !variable.default.is_empty() {
            let _ = write!(text, " [default: {}]", variable.default.trim_matches('`'));
        }
    }
    text
}

#[derive(Debug, Args)]
#[command(after_help = environment())]
pub(crate) struct Up {
    /// Address to listen on
    #[arg(long, env = "PLATEN_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(super) listen: SocketAddr,

    /// Manifest of the application
    #[arg(long, env = "PLATEN_MANIFEST", value_name = "FILE", default_value = "spin.toml")]
    pub(super) manifest: PathBuf,

    #[command(flatten)]
    pub(super) at: DatabaseArgs,

    /// Address on which Prometheus can read /metrics [default: metrics are not served]
    #[arg(long, env = "PLATEN_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    pub(super) metrics_listen: Option<SocketAddr>,

    /// Use the render farms at these URLs, separated by commas, instead of one in this process; their token is read
    /// from --farm-token-file or the environment variable `PLATEN_FARM_TOKEN`
    #[arg(long, env = "PLATEN_FARM_URL", value_name = "URL,…")]
    pub(super) farm_url: Option<FarmAddresses>,

    /// File that holds the token of the farms of --farm-url
    #[arg(long, env = "PLATEN_FARM_TOKEN_FILE", value_name = "FILE")]
    pub(super) farm_token_file: Option<PathBuf>,

    /// Number of connections of clients; when there are more, idle ones are closed. At most half of the limit of
    /// open files
    // Each takes some kilobytes of memory, and up to 200 KiB while a head arrives or a response waits for its client.
    #[arg(long, env = "PLATEN_MAX_CONNECTIONS", value_name = "N", default_value = "4096")]
    max_connections: NonZeroUsize,

    /// Number of connections from one address (IPv6: one /64 network). An address also has a quarter of the memory
    /// for request bodies. 0 means no limits for one address: use it behind a reverse proxy, which has one address
    /// for all clients
    #[arg(long, env = "PLATEN_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N", default_value = "1024")]
    max_connections_per_address: usize,

    #[command(flatten)]
    pub(super) farm: platen_farm::Config,
}

impl Up {
    pub(crate) async fn run(self) -> Result<()> {
        startup::raise_file_limit();
        let limits = self.server_limits(startup::file_limit());
        let registry = MetricsRegistry::default();
        telemetry::start("platen", &registry)?;
        let stop = startup::stop_signals(ABORT_TIME)?;
        let Some(ready) = stop.first.run_until_cancelled(self.start(limits, registry)).await.transpose()?
        else {
            return Ok(());
        };
        let Ready { listener, server, farm } = ready;
        startup::announce(&format!("platen is listening on http://{}", listener.local_addr()?));
        Arc::new(server).serve(listener, &stop).await;
        if stop.second.is_cancelled() {
            process::exit(1);
        }
        if let Some(farm) = farm {
            farm.stop().await;
        }
        telemetry::stop().await;
        tracing::info!("stopped");
        Ok(())
    }

    fn server_limits(&self, max_files: u64) -> ServerLimits {
        let max_connections = self.max_connections.get();
        // A request also uses up to two descriptors for its job; databases and browsers need the rest.
        let allowed = usize::try_from(max_files / 2).unwrap_or(usize::MAX).max(1);
        if allowed < max_connections {
            tracing::warn!(
                max_files,
                max_connections,
                allowed,
                "the limit of open files lowers --max-connections"
            );
        }
        ServerLimits {
            max_connections: max_connections.min(allowed),
            max_connections_per_address: Some(self.max_connections_per_address).filter(|max| *max > 0),
            drain_timeout: self.farm.drain_timeout(),
        }
    }

    async fn start(self, limits: ServerLimits, registry: MetricsRegistry) -> Result<Ready> {
        let manifest = Manifest::read(&self.manifest)?;
        tracing::info!(application = manifest.application.name, database = %self.at.location(), "starting");
        make_private(&self.at.data)?;
        let mut database = self.at.open(Purpose::Serve).await?;
        let migrated = crate::migrate::migrate(&database)
            .await
            .with_context(|| format!("cannot migrate the database {}", self.at.location()))?;
        if let Some(last) = migrated.last() {
            tracing::info!(steps = migrated.len(), to = last.number, "the database was migrated");
        }
        let checks = database.connect();
        // Only the statements of the components are counted.
        database.statements = StatementMetrics::default();
        let listener = bind(self.listen).await?;
        let metrics_listener = match self.metrics_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let statements = database.statements.clone();
        let metrics = Arc::new(registry.register(|registry| Metrics::register(registry, &statements)));

        for name in Variables::unknown(&manifest.variables, std::env::vars_os().map(|(name, _)| name)) {
            tracing::warn!(name, "spin.toml has no variable for this variable of the environment");
        }
        let farm = FarmAccess::new(self.farm_url, self.farm_token_file.as_deref()).await?;
        let variables =
            Variables::resolve(&manifest.variables, farm.variables(), |name| std::env::var(name).ok())?;
        let cache = self.at.data.canonicalize().map(|data| data.join("cache"))?;
        make_private(&cache)?;
        // At the same time, because the one computes and the other waits for browsers.
        let loading = Arc::clone(&metrics);
        let load = tokio::task::spawn_blocking(move || {
            let drain = InstanceDrain::default();
            let handlers = load(&cache, &manifest, &variables, &database, &drain, &loading)?;
            anyhow::Ok((manifest, handlers, drain))
        });
        let listeners = [Some(&listener), metrics_listener.as_ref()].into_iter().flatten();
        let ports = listeners.map(|listener| Ok(listener.local_addr()?.port())).collect::<Result<_>>()?;
        let ((manifest, handlers, drain), farm) =
            tokio::try_join!(async { load.await? }, farm.start(self.farm, ports, &registry))?;
        let health = Health::new(checks, farm.as_ref().map(|farm| farm.readiness.clone()));
        let server = Server::new(manifest.routes(), &handlers, drain, limits, health, metrics);

        if let Some(listener) = metrics_listener {
            startup::announce(&format!("metrics on http://{}/metrics", listener.local_addr()?));
            tokio::spawn(server::serve_metrics(listener, registry));
        }
        Ok(Ready { listener, server, farm })
    }
}

/// A server that is ready to serve.
struct Ready {
    listener: TcpListener,
    server: Server,
    farm: Option<OwnFarm>,
}

fn load(
    cache: &Path,
    manifest: &Manifest,
    variables: &Variables,
    database: &Database,
    drain: &InstanceDrain,
    metrics: &Arc<Metrics>,
) -> Result<BTreeMap<String, Handler>> {
    let engine = runtime::start_engine(cache)?;
    runtime::load(&engine, manifest, variables, database, drain, metrics)
}

/// The variables of `spin.toml` that the server sets. Those for further farms are empty, because one variable contains
/// all farms.
pub(super) const SERVER_VARIABLES: [&str; 9] = [
    "farm_token",
    "farm_url",
    "farm_url2",
    "farm_url3",
    "farm_url4",
    "farm_url5",
    "farm_url6",
    "farm_url7",
    "farm_url8",
];

/// How the components reach the farms: one in this process, which has a listener here, or others.
struct FarmAccess {
    /// Separated by commas.
    urls: String,
    token: SecretString,
    listener: Option<TcpListener>,
}

impl FarmAccess {
    async fn new(urls: Option<FarmAddresses>, token_file: Option<&Path>) -> Result<Self> {
        if let Some(urls) = urls {
            let token = token_of_farms(token_file)?;
            return Ok(Self { urls: urls.to_string(), token, listener: None });
        }
        // Only this process uses it, so any port will do.
        let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let urls = format!("http://{}", listener.local_addr()?);
        let token: String = OsRng.unwrap_err().sample_iter(Alphanumeric).take(43).map(char::from).collect();
        Ok(Self { urls, token: token.into(), listener: Some(listener) })
    }

    fn variables(&self) -> BTreeMap<&'static str, SecretString> {
        let value = |name| match name {
            "farm_url" => self.urls.as_str().into(),
            "farm_token" => self.token.clone(),
            _ => SecretString::default(),
        };
        SERVER_VARIABLES.into_iter().map(|name| (name, value(name))).collect()
    }

    /// Starts the farm of this process. Its pages cannot reach `ports`, on which this server listens.
    async fn start(
        self,
        config: platen_farm::Config,
        ports: Vec<u16>,
        registry: &MetricsRegistry,
    ) -> Result<Option<OwnFarm>> {
        let Some(listener) = self.listener else { return Ok(None) };
        let farm =
            Farm::start_with_metrics(config, registry).await.context("cannot start the render farm")?;
        for port in ports {
            farm.forbid_port(port);
        }
        let token = FarmToken::new(self.token.expose_secret())?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let readiness = farm.readiness();
        let serving = tokio::spawn(async move {
            if let Err(error) = farm.serve(listener, token, stopped).await {
                tracing::error!(error = &error as &dyn std::error::Error, "the render farm failed");
            }
        });
        Ok(Some(OwnFarm { stop, serving, readiness }))
    }
}

/// The token of the farms of --farm-url.
pub(super) fn token_of_farms(file: Option<&Path>) -> Result<SecretString> {
    startup::secret("PLATEN_FARM_TOKEN", file)?.context(
        "--farm-url needs a token: set PLATEN_FARM_TOKEN to the token of those farms, or --farm-token-file to a file \
         that holds it",
    )
}

/// The farm in this process.
struct OwnFarm {
    stop: CancellationToken,
    serving: JoinHandle<()>,
    readiness: Readiness,
}

impl OwnFarm {
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(error = &error as &dyn std::error::Error, "the render farm failed");
        }
    }
}

/// Creates a directory that only this user may enter; an existing one is not changed.
pub(super) fn make_private(directory: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
