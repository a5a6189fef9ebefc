//! `platen up`: the server.
//!
//! Invariant: once "platen is listening on" is printed, a request is answered; after SIGTERM or
//! SIGINT what runs is finished, in bounded time, before the farm it needs is stopped.

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
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use platen_farm::{Farm, FarmToken};
use rand::{Rng as _, TryRngCore as _, distr::Alphanumeric, rngs::OsRng};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{DatabaseArgs, secret};
use crate::{
    db::{Database, Purpose},
    manifest::Manifest,
    metrics::Metrics,
    runtime::{self, Engine, Handler},
    server::{self, Server},
    variables::Variables,
};

/// Flags of `platen up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Address to listen on
    #[arg(long, env = "PLATEN_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,

    /// The application's manifest
    #[arg(long, env = "PLATEN_MANIFEST", value_name = "FILE", default_value = "spin.toml")]
    manifest: PathBuf,

    #[command(flatten)]
    at: DatabaseArgs,

    /// Address to serve /metrics on, for Prometheus; nowhere unless told
    #[arg(long, env = "PLATEN_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,

    /// Use the farm at this URL instead of one in this process; its token is read from the
    /// environment variable `PLATEN_FARM_TOKEN`
    #[arg(long, env = "PLATEN_FARM_URL", value_name = "URL")]
    farm_url: Option<Url>,

    #[command(flatten)]
    farm: platen_farm::Config,
}

impl Up {
    /// Serves until a signal.
    pub(crate) async fn run(self) -> Result<()> {
        raise_file_limit();
        let stop = stop_signal()?;
        let Some(ready) = stop.run_until_cancelled(self.start()).await.transpose()? else {
            return Ok(());
        };
        let Ready { listener, server, farm } = ready;
        println!("platen is listening on http://{}", listener.local_addr()?);
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
        let database = self.at.open(Purpose::Serve).await?;
        let migrated = crate::migrate::migrate(&database)
            .await
            .with_context(|| format!("the database {} was not brought up to date", self.at.location()))?;
        if let Some(last) = migrated.last() {
            tracing::info!(steps = migrated.len(), to = last.number, "the database was brought up to date");
        }
        // The figure of statements is the components' own.
        let database = database.counted_anew();
        let listener = bind(self.listen).await?;
        let metrics_listener = match self.metrics_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let metrics = Arc::new(Metrics::default());

        let farm = FarmAccess::new(self.farm_url).await?;
        let variables =
            Variables::resolve(&manifest.variables, farm.variables(), |name| std::env::var(name).ok())?;
        let cache = self.at.data.canonicalize().map(|data| data.join("cache"))?;
        make_private(&cache)?;
        // Side by side: the one computes, the other waits for browsers.
        let load = tokio::task::spawn_blocking({
            let (metrics, database) = (Arc::clone(&metrics), database.clone());
            move || load(&cache, &manifest, &variables, &database, &metrics)
        });
        let ours = [Some(&listener), metrics_listener.as_ref()].into_iter().flatten();
        let ports = ours.map(|listener| Ok(listener.local_addr()?.port())).collect::<Result<_>>()?;
        let (server, farm) = tokio::try_join!(async { load.await? }, farm.start(self.farm, ports))?;

        if let Some(listener) = metrics_listener {
            println!("metrics on http://{}/metrics", listener.local_addr()?);
            let farm = farm.as_ref().map(|farm| farm.address);
            tokio::spawn(server::serve_metrics(listener, metrics, database, farm));
        }
        Ok(Ready { listener, server, farm })
    }
}

/// A server that only has to be let go.
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
    let engine = Engine::start(cache)?;
    let handlers: BTreeMap<String, Handler> = runtime::load(&engine, manifest, variables, database, metrics)?;
    Ok(Server::new(manifest.routes(), &handlers, Arc::clone(metrics)))
}

/// A farm that the components may reach: its own listener, or somebody else's URL.
struct FarmAccess {
    url: String,
    token: SecretString,
    listener: Option<TcpListener>,
}

impl FarmAccess {
    async fn new(url: Option<Url>) -> Result<Self> {
        if let Some(url) = url {
            let token = secret("PLATEN_FARM_TOKEN").context(
                "a farm elsewhere wants its token: set PLATEN_FARM_TOKEN to what that farm was started with",
            )?;
            return Ok(Self { url: url.as_str().trim_end_matches('/').to_owned(), token, listener: None });
        }
        // Loopback and a port of the system's choice: nobody else has to know.
        let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let token: String = OsRng.unwrap_err().sample_iter(Alphanumeric).take(43).map(char::from).collect();
        Ok(Self { url, token: token.into(), listener: Some(listener) })
    }

    fn variables(&self) -> BTreeMap<&str, SecretString> {
        BTreeMap::from([("farm_url", self.url.as_str().into()), ("farm_token", self.token.clone())])
    }

    /// Starts the farm. Its pages are kept away from `ports`, which are this server's own.
    async fn start(self, config: platen_farm::Config, ports: Vec<u16>) -> Result<Option<OwnFarm>> {
        let Some(listener) = self.listener else { return Ok(None) };
        let address = listener.local_addr()?;
        let farm = Farm::start(config).await.context("the render farm does not start")?;
        for port in ports {
            farm.forbid_port(port);
        }
        let token = FarmToken::new(self.token.expose_secret())?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            if let Err(error) = farm.serve(listener, token, stopped).await {
                tracing::error!(error = &error as &dyn std::error::Error, "the render farm broke");
            }
        });
        Ok(Some(OwnFarm { address, stop, serving }))
    }
}

/// The farm in this process.
struct OwnFarm {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl OwnFarm {
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(error = &error as &dyn std::error::Error, "the render farm broke");
        }
    }
}

/// Makes a directory that only this user may enter; one that is there stays as it is.
pub(super) fn make_private(directory: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("the directory {} cannot be made", directory.display()))
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))
}

/// The first SIGTERM or SIGINT stops in good order, the second at once.
fn stop_signal() -> Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stopping.is_cancelled() {
                std::process::exit(1);
            }
            tracing::info!("stopping when what runs is finished");
            stopping.cancel();
        }
    });
    Ok(stop)
}

/// Most systems start processes with 1,024 files for the sake of very old programs, and allow
/// far more.
fn raise_file_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!(error = &error as &dyn std::error::Error, "the limit of open files stays as it is");
    }
}
