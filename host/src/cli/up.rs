//! `platen up`: the server.
//!
//! Invariant: when "platen is listening on" is printed, requests are answered. After SIGTERM, SIGINT or SIGHUP
//! the requests in flight end, within a timeout, before the farm is stopped. After a second signal they are aborted, and
//! the rows of their attempts are written.

use std::{
    env,
    fmt::Write as _,
    fs::DirBuilder,
    net::SocketAddr,
    num::NonZeroUsize,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use clap::Args;
use platen_farm::Farm;
use platen_program::{MetricsRegistry, startup, telemetry};
use platen_shared::{farm_address::FarmAddress, limits::MAX_CLAIM_AHEAD_SECONDS};
use secrecy::SecretString;
use tokio::{net::TcpSocket, runtime::Handle};

use super::DatabaseArgs;
use crate::{
    components::{self, Settings},
    db::{Purpose, StatementMetrics},
    metrics::{self, Metrics},
    runtime::{self, InstanceDrain, OWN_FARM_HOST, OwnFarm},
    server::{Health, Server, ServerLimits},
};

/// The time from the second signal to the exit, for the rows of attempts.
const ABORT_TIME: Duration = Duration::from_secs(1);

/// What the help lists besides the flags.
fn environment() -> String {
    let mut text = String::from("Environment variables without a flag:");
    for variable in platen_program::SECRETS.iter().chain(platen_program::OF_COMPONENTS) {
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

    /// Directory with the WebAssembly components [default: that of the program]
    #[arg(long, env = "PLATEN_COMPONENTS", value_name = "DIRECTORY")]
    components: Option<PathBuf>,

    #[command(flatten)]
    pub(super) at: DatabaseArgs,

    /// Address on which Prometheus can read /metrics [default: metrics are not served]
    #[arg(long, env = "PLATEN_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    pub(super) metrics_listen: Option<SocketAddr>,

    /// Use the render farm at this URL, or the farms behind the proxy there, instead of one in this process; its token is
    /// read from --farm-token-file or the environment variable `PLATEN_FARM_TOKEN`
    #[arg(long, env = "PLATEN_FARM_URL", value_name = "URL")]
    pub(super) farm_url: Option<FarmAddress>,

    /// File that holds the token of the farm of --farm-url
    #[arg(long, env = "PLATEN_FARM_TOKEN_FILE", value_name = "FILE")]
    pub(super) farm_token_file: Option<PathBuf>,

    /// Number of connections of clients; further ones wait until others are closed. At most half of the limit of
    /// open files
    // Each takes some kilobytes of memory, and up to 256 KiB while a request arrives or a response waits for its client.
    #[arg(long, env = "PLATEN_MAX_CONNECTIONS", value_name = "N", default_value = "4096")]
    max_connections: NonZeroUsize,

    /// Number of connections from one address (IPv6: one /64 network), which also has a part of the places for
    /// uploads. 0 means no limits for one address: use it behind a reverse proxy, which has one address
    /// for all clients
    #[arg(long, env = "PLATEN_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N", default_value = "1024")]
    max_connections_per_address: usize,

    /// How long this server may use attempts that it has claimed ahead, in seconds from 0 to 30: for a server that is far from
    /// its database. 0 claims each attempt by itself
    #[arg(
        long, env = "PLATEN_CLAIM_AHEAD", value_name = "SECONDS", default_value = "0",
        value_parser = clap::value_parser!(u64).range(0..=MAX_CLAIM_AHEAD_SECONDS)
    )]
    claim_ahead: u64,

    #[command(flatten)]
    pub(super) farm: platen_farm::Config,
}

impl Up {
    pub(crate) async fn run(self) -> Result<()> {
        let (begun, address) = (Instant::now(), self.listen);
        startup::raise_file_limit();
        let limits = self.server_limits(startup::file_limit());
        let registry = MetricsRegistry::default();
        let stop = startup::stop_signals(ABORT_TIME)?;
        let Some(ready) = stop.first.run_until_cancelled(self.start(limits, registry)).await.transpose()?
        else {
            return Ok(());
        };
        let (socket, server, farm) = ready;
        let listener = startup::listen(socket).with_context(|| format!("cannot listen on {address}"))?;
        tracing::info!(after_ms = begun.elapsed().as_millis(), "ready");
        startup::announce(&format!("platen is listening on http://{}", listener.local_addr()?));
        Arc::new(server).serve(listener, &stop).await;
        if stop.second.is_cancelled() {
            process::exit(1);
        }
        if let Some(farm) = farm {
            farm.shutdown().await;
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
            client_address_header: None,
            drain_timeout: self.farm.drain_timeout(),
        }
    }

    /// The directory of the components.
    pub(super) fn components(&self) -> Result<PathBuf> {
        match &self.components {
            Some(directory) => Ok(directory.clone()),
            None => Ok(env::current_exe()?.parent().unwrap_or(Path::new("/")).to_owned()),
        }
    }

    /// The settings of the components.
    pub(super) fn settings(&self, farm_token: SecretString) -> Result<Settings> {
        let farm_url = self.farm_url.clone().unwrap_or_else(|| FarmAddress {
            https: false,
            authority: OWN_FARM_HOST.to_owned(),
            path: String::new(),
        });
        let mut settings = Settings::read(farm_url, farm_token)?;
        settings.claim_ahead = self.claim_ahead;
        Ok(settings)
    }

    /// A server that is ready to serve.
    async fn start(
        self,
        mut limits: ServerLimits,
        registry: MetricsRegistry,
    ) -> Result<(TcpSocket, Server, Option<Farm>)> {
        let directory = self.components()?;
        let farm_token = match self.farm_url {
            Some(_) => token_of_farm(self.farm_token_file.as_deref())?,
            // The farm of this process has none, but the variable must not be empty.
            None => "none".into(),
        };
        let settings = self.settings(farm_token)?;
        limits.client_address_header.clone_from(&settings.client_address_header);
        tracing::info!(database = %self.at.location(), "starting");
        make_private(&self.at.data)?;
        let mut database = self.at.open(Purpose::Serve).await?;
        let migrated = crate::migrate::migrate(&database)
            .await
            .with_context(|| format!("cannot migrate the database {}", self.at.location()))?;
        if migrated {
            tracing::info!("the database was migrated");
        }
        let (checks, quotas) = (database.clone(), database.clone());
        // Only the statements of the components are counted.
        database.statements = StatementMetrics::default();
        let socket = reserve(self.listen)?;
        let metrics_socket = self.metrics_listen.map(reserve).transpose()?;
        let statements = database.statements.clone();
        let metrics = Arc::new(registry.register(|registry| Metrics::register(registry, &statements)));

        for name in components::unknown_variables() {
            tracing::warn!(name, "no component has a setting of this name");
        }
        let cache = self.at.data.canonicalize().map(|data| data.join("cache"))?;
        make_private(&cache)?;
        // At the same time, because the one computes and the other waits for browsers.
        let (loading, own_farm) = (Arc::clone(&metrics), OwnFarm::default());
        let reached = Arc::clone(&own_farm);
        let load = tokio::task::spawn_blocking(move || {
            let drain = InstanceDrain::default();
            let components = runtime::load_components(
                &directory, &cache, &settings, &database, &drain, reached, &loading,
            )?;
            anyhow::Ok((components, drain))
        });
        let sockets = [Some(&socket), metrics_socket.as_ref()].into_iter().flatten();
        let ports: Vec<u16> = sockets.map(|socket| Ok(socket.local_addr()?.port())).collect::<Result<_>>()?;
        let start_farm = async {
            if self.farm_url.is_some() {
                return Ok(None);
            }
            let farm = Farm::start_with_metrics(self.farm, registry.clone()).await;
            let farm = farm.context("cannot start the render farm")?;
            // Its pages cannot reach this server.
            for port in ports {
                farm.forbid_port(port);
            }
            Ok(Some(farm))
        };
        let ((components, drain), farm) = tokio::try_join!(async { load.await? }, start_farm)?;
        if let Some(farm) = &farm {
            let _ = own_farm.set((farm.router(), Handle::current()));
        }
        let health = Health::new(checks, self.farm_url, farm.as_ref().map(Farm::readiness));
        if metrics_socket.is_some() {
            tokio::spawn(Arc::clone(&metrics).watch_quotas(quotas));
        }
        let server = Server::new(components, drain, limits, health, metrics);

        if let Some(socket) = metrics_socket {
            let listener = startup::listen(socket).context("cannot listen for metrics")?;
            startup::announce(&format!("metrics on http://{}/metrics", listener.local_addr()?));
            tokio::spawn(metrics::serve(listener, registry));
        }
        Ok((socket, server, farm))
    }
}

/// The token of the farm of --farm-url.
pub(super) fn token_of_farm(file: Option<&Path>) -> Result<SecretString> {
    platen_program::secret("PLATEN_FARM_TOKEN", file)?.context(
        "--farm-url needs a token: set PLATEN_FARM_TOKEN to the token of that farm, or --farm-token-file to a file \
         that holds it",
    )
}

/// Creates a directory that only this user may enter; an existing one is not changed.
pub(super) fn make_private(directory: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))
}

fn reserve(address: SocketAddr) -> Result<TcpSocket> {
    startup::reserve(address).with_context(|| format!("cannot listen on {address}"))
}
