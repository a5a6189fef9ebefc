//! `platen up`: the server.
//!
//! Invariant: when "platen is listening on" is printed, requests are answered. After SIGTERM or SIGINT the
//! requests in flight end, within a timeout, before the farm is stopped.

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use clap::Args;
use platen_farm::{Farm, FarmToken, MetricsRegistry, startup};
use prometheus_client::metrics::counter::Counter;
use rand::{Rng as _, TryRngCore as _, distr::Alphanumeric, rngs::OsRng};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{DatabaseArgs, secret};
use crate::{
    db::{Database, Purpose},
    manifest::Manifest,
    metrics::Metrics,
    runtime::{self, Handler},
    server::{self, Server},
    variables::Variables,
};

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Address to listen on
    #[arg(long, env = "PLATEN_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,

    /// Manifest of the application
    #[arg(long, env = "PLATEN_MANIFEST", value_name = "FILE", default_value = "spin.toml")]
    manifest: PathBuf,

    #[command(flatten)]
    at: DatabaseArgs,

    /// Address on which Prometheus can read /metrics [default: metrics are not served]
    #[arg(long, env = "PLATEN_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,

    /// Use the render farm at this URL instead of one in this process; its token is read from the environment
    /// variable `PLATEN_FARM_TOKEN`
    #[arg(long, env = "PLATEN_FARM_URL", value_name = "URL")]
    farm_url: Option<Url>,

    #[command(flatten)]
    farm: platen_farm::Config,
}

impl Up {
    pub(crate) async fn run(self) -> Result<()> {
        startup::raise_file_limit();
        let stop = startup::stop_signal()?;
        let Some(ready) = stop.run_until_cancelled(self.start()).await.transpose()? else {
            return Ok(());
        };
        let Ready { listener, server, farm } = ready;
        startup::announce(&format!("platen is listening on http://{}", listener.local_addr()?));
        Arc::new(server).serve(listener, stop.cancelled()).await;
        if let Some(farm) = farm {
            farm.stop().await;
        }
        tracing::info!("stopped");
        Ok(())
    }

    async fn start(self) -> Result<Ready> {
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
        // Only the statements of the components are counted.
        database.statements = Counter::default();
        let listener = bind(self.listen).await?;
        let metrics_listener = match self.metrics_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let registry = MetricsRegistry::default();
        let statements = database.statements.clone();
        let metrics = Arc::new(registry.register(|registry| Metrics::register(registry, statements)));

        let farm = FarmAccess::new(self.farm_url).await?;
        let variables =
            Variables::resolve(&manifest.variables, farm.variables(), |name| std::env::var(name).ok())?;
        let cache = self.at.data.canonicalize().map(|data| data.join("cache"))?;
        make_private(&cache)?;
        // At the same time, because the one computes and the other waits for browsers.
        let load =
            tokio::task::spawn_blocking(move || load(&cache, &manifest, &variables, &database, &metrics));
        let listeners = [Some(&listener), metrics_listener.as_ref()].into_iter().flatten();
        let ports = listeners.map(|listener| Ok(listener.local_addr()?.port())).collect::<Result<_>>()?;
        let (server, farm) =
            tokio::try_join!(async { load.await? }, farm.start(self.farm, ports, &registry))?;

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
    metrics: &Arc<Metrics>,
) -> Result<Server> {
    let engine = runtime::start_engine(cache)?;
    let handlers: BTreeMap<String, Handler> = runtime::load(&engine, manifest, variables, database, metrics)?;
    Ok(Server::new(manifest.routes(), &handlers, Arc::clone(metrics)))
}

/// How the components reach the farm: one in this process, which has a listener here, or another one.
struct FarmAccess {
    url: String,
    token: SecretString,
    listener: Option<TcpListener>,
}

impl FarmAccess {
    async fn new(url: Option<Url>) -> Result<Self> {
        if let Some(url) = url {
            let token = secret("PLATEN_FARM_TOKEN")
                .context("--farm-url needs a token: set PLATEN_FARM_TOKEN to the token of that farm")?;
            return Ok(Self { url: url.as_str().trim_end_matches('/').to_owned(), token, listener: None });
        }
        // Only this process uses it, so any port will do.
        let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let token: String = OsRng.unwrap_err().sample_iter(Alphanumeric).take(43).map(char::from).collect();
        Ok(Self { url, token: token.into(), listener: Some(listener) })
    }

    fn variables(&self) -> BTreeMap<&str, SecretString> {
        BTreeMap::from([("farm_url", self.url.as_str().into()), ("farm_token", self.token.clone())])
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
        let serving = tokio::spawn(async move {
            if let Err(error) = farm.serve(listener, token, stopped).await {
                tracing::error!(error = &error as &dyn std::error::Error, "the render farm failed");
            }
        });
        Ok(Some(OwnFarm { stop, serving }))
    }
}

/// The farm in this process.
struct OwnFarm {
    stop: CancellationToken,
    serving: JoinHandle<()>,
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
