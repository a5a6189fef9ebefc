//! The renderers under comparison: how each is started and which pages it supports.
//!
//! Invariant: all run the same Chromium (or the full one beside it, where the name says so) as an
//! unprivileged user with the sandbox enabled. Dropping a [`Target`] stops all of its processes.

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use platen_harness::{
    app::{Options as AppOptions, TestApp},
    client::RENDER,
    database::DatabaseKind,
    operator::Quota,
    process::{self, Process, rest_of_line},
    settings::Settings,
    site, tls,
};
use tempfile::TempDir;

use super::page::{Output, Page, Source};
use crate::{
    cpu_accounting::{Cgroups, ProcessTree},
    farm::Farm,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Raw CDP on warm pages that are used again and never reset
    Raw,
    /// The farm alone, all jobs from one account
    Farm,
    /// The farm alone, a new account for every job
    FarmAccounts,
    /// Another build of the farm, as `farm`: --baseline
    Baseline,
    /// The farm alone, with the files of a page in its markup
    Inlined,
    /// `platen up`: HTTP, WebAssembly, libSQL, farm
    Chain,
    /// puppeteer-cluster with contexts, on the same Chromium
    Cluster,
    /// puppeteer-cluster with contexts, on full Chromium
    ClusterChromium,
    /// browserless, on the same Chromium
    Browserless,
    /// browserless, on full Chromium
    BrowserlessChromium,
    /// `WeasyPrint`
    Weasyprint,
}

impl Kind {
    /// The name in reports, as Markdown.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Raw => "one warm page by raw CDP",
            Self::Farm => "**Platen farm**",
            Self::FarmAccounts => "**Platen farm, new account per job**",
            Self::Baseline => "Platen farm, baseline",
            Self::Inlined => "Platen farm, files in the markup",
            Self::Chain => "**Platen, end to end**",
            Self::Cluster => "puppeteer-cluster, contexts",
            Self::ClusterChromium => "puppeteer-cluster, contexts, full Chromium",
            Self::Browserless => "browserless",
            Self::BrowserlessChromium => "browserless, full Chromium",
            Self::Weasyprint => "WeasyPrint",
        }
    }

    /// The name on the command line, of directories and of cgroups.
    pub(crate) fn name(self) -> String {
        super::value_name(&self)
    }

    pub(crate) fn supports(self, page: &Page) -> bool {
        if self == Self::Inlined || matches!(page.source, Source::Files(_)) {
            let has_files = matches!(
                self,
                Self::Farm | Self::FarmAccounts | Self::Baseline | Self::Chain | Self::Inlined
            );
            return has_files && matches!(page.source, Source::Files(_));
        }
        match self {
            Self::Raw | Self::Farm | Self::Cluster | Self::Browserless if page.is_heavy => true,
            _ if page.is_heavy => false,
            Self::Raw | Self::Farm | Self::FarmAccounts | Self::Baseline | Self::Inlined | Self::Chain => {
                true
            }
            Self::Weasyprint => {
                // It has neither scripts, which no PDF needs, nor the certificate of the hosts.
                page.output == Output::Pdf && page.assets.is_empty() && matches!(page.source, Source::Html(_))
            }
            // Renderers that wait in real time take at least the wait, which needs no measurement.
            _ => page.wait_ms < 10_000,
        }
    }

    fn needs_full_chromium(self) -> bool {
        matches!(self, Self::ClusterChromium | Self::BrowserlessChromium)
    }
}

/// How jobs are sent to a renderer.
#[derive(Debug, Clone)]
pub(crate) enum Api {
    /// The internal API of the farm.
    Farm {
        /// Each job comes from a new account.
        new_accounts: bool,
    },
    /// The public API; the servers in `bench/peers` accept its fields without a key.
    Public { path: &'static str, key: Option<String> },
    /// The API of browserless, with launch options for Chromium as JSON.
    Browserless { launch: String },
}

/// What all renderers are started with.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) chromium: PathBuf,
    pub(crate) full_chromium: PathBuf,
    /// Another build of the farm.
    pub(crate) baseline: Option<PathBuf>,
    /// Directory in which the other renderers are installed.
    pub(crate) tools: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) cgroups: Cgroups,
    /// Home directories and data.
    pub(crate) directory: TempDir,
}

/// How a renderer is started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) kind: Kind,
    /// The name of its directory and its cgroup.
    pub(crate) name: String,
    /// Jobs that it renders at once. A farm renders two for each core.
    pub(crate) concurrency: usize,
    /// Memory for the warm pages of a farm, if it is not the default.
    pub(crate) warm_memory_mib: Option<u32>,
}

/// A running renderer.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) api: Api,
    pub(crate) address: SocketAddr,
    // Fields are dropped in this order: the server stops first, then remaining processes are killed.
    _server: Box<dyn fmt::Debug>,
    pub(crate) processes: ProcessTree,
}

/// browserless takes its token from the query.
pub(crate) const BROWSERLESS_TOKEN: &str = "bench";

/// A Chromium that trusts the site's certificate and draws fonts as the farm's does: a script of the same name in
/// `directory`, because not every renderer passes switches on. The same path if there is no such Chromium.
pub(crate) fn trusting(chromium: &Path, directory: &Path) -> Result<PathBuf> {
    if !chromium.exists() {
        return Ok(chromium.to_owned());
    }
    let script = directory.join(chromium.file_name().context("the path of Chromium has no name")?);
    let trust = format!("--ignore-certificate-errors-spki-list={}", tls::LOCALHOST_KEY_HASH);
    fs::write(
        &script,
        format!("#!/bin/sh\nexec '{}' {trust} --font-render-hinting=none \"$@\"\n", chromium.display()),
    )?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(script)
}

impl Target {
    /// # Errors
    /// When a program that the renderer needs is not installed or does not start.
    pub(crate) async fn start(kind: Kind, environment: &Environment) -> Result<Self> {
        let (name, concurrency) = (kind.name(), super::CONCURRENCY);
        Self::launch(&Launch { kind, name, concurrency, warm_memory_mib: None }, environment).await
    }

    /// [`Target::start`] with other settings.
    pub(crate) async fn launch(launch: &Launch, environment: &Environment) -> Result<Self> {
        let kind = launch.kind;
        ensure!(
            !kind.needs_full_chromium() || environment.full_chromium.exists(),
            "full Chromium is not installed"
        );
        match kind {
            Kind::Chain => Self::start_chain(environment).await,
            Kind::Farm | Kind::FarmAccounts | Kind::Baseline | Kind::Inlined => {
                Self::start_farm(launch, environment).await
            }
            _ => Self::start_other(launch, environment).await,
        }
    }

    async fn start_other(launch: &Launch, environment: &Environment) -> Result<Self> {
        let Launch { kind, name, concurrency, .. } = launch;
        let kind = *kind;
        let home = environment.directory.path().join(name);
        fs::create_dir(&home)?;
        let Environment { chromium, full_chromium, .. } = environment;
        let chromium = if kind.needs_full_chromium() { full_chromium } else { chromium };
        let resolver_rules = format!("MAP {} 127.0.0.1", site::HOST);
        let concurrency = concurrency.to_string();
        let peers = environment.tools.join("peers");
        let node = environment.tools.join("node/node_modules/.bin/node");
        let mut api = Api::Public { path: "/", key: None };
        let mut command = match kind {
            Kind::Raw => {
                let mut command = unprivileged(&std::env::current_exe()?, &home)?;
                command.arg("raw").arg("--chromium").arg(chromium).args(["--resolve", &resolver_rules]);
                command.args(["--pages", &concurrency]);
                command
            }
            Kind::Weasyprint => {
                let mut command = unprivileged(&environment.tools.join("python/bin/python"), &home)?;
                command.arg(peers.join("weasyprint_server.py"));
                command
            }
            Kind::Cluster | Kind::ClusterChromium => {
                let mut command = unprivileged(&node, &home)?;
                command.arg(peers.join("puppeteer-cluster.mjs")).env("BENCH_RESOLVE", &resolver_rules);
                command
            }
            _ => {
                let resolver_rules = format!("--host-resolver-rules={resolver_rules}");
                api =
                    Api::Browserless { launch: serde_json::json!({ "args": [resolver_rules] }).to_string() };
                let mut command = unprivileged(&node, &home)?;
                command.arg(peers.join("browserless.mjs")).current_dir(&peers);
                command.env("PLAYWRIGHT_BROWSERS_PATH", home.join("browsers"));
                command.envs([("HOST", "127.0.0.1"), ("TOKEN", BROWSERLESS_TOKEN), ("TIMEOUT", "120000")]);
                // Without its log, which has lines for every request and event.
                command.envs([("DEBUG", "quiet"), ("NODE_ENV", "production")]);
                command.env("PORT", free_port()?.to_string());
                command.env("CONCURRENT", &concurrency).env("QUEUED", "64");
                command
            }
        };
        command.env("BENCH_CHROMIUM", chromium).env("BENCH_CONCURRENCY", concurrency);
        let process = Process::start(name, &command, Signal::SIGTERM)?;
        let address = process.wait_for(|log| rest_of_line(log, "listening on http://")).await?.parse()?;
        let processes = environment.cgroups.adopt(name, process.pid())?;
        Ok(Self { kind, api, address, _server: Box::new(process), processes })
    }

    /// Starts the farm with its default log, one line per job, as in production.
    async fn start_farm(launch: &Launch, environment: &Environment) -> Result<Self> {
        let kind = launch.kind;
        let program = match kind {
            Kind::Baseline => environment.baseline.clone().context("--baseline is not given")?,
            _ => environment.settings.platen.with_file_name("platen-farm"),
        };
        let mut command = Command::new(program);
        command.args(["--resolve", &format!("{}=127.0.0.1", site::HOST)]);
        if let Some(mebibytes) = launch.warm_memory_mib {
            command.args(warm_memory(mebibytes));
        }
        let farm = Farm::start(command, &environment.chromium).await?;
        let processes = environment.cgroups.adopt(&launch.name, farm.process.pid())?;
        let (api, address) = (Api::Farm { new_accounts: kind == Kind::FarmAccounts }, farm.address);
        Ok(Self { kind, api, address, _server: Box::new(farm), processes })
    }

    async fn start_chain(environment: &Environment) -> Result<Self> {
        let chromium = environment.chromium.to_str().context("the path of Chromium is not UTF-8")?;
        let options = AppOptions {
            arguments: vec!["--chromium".to_owned(), chromium.to_owned()],
            ..AppOptions::own_farm(DatabaseKind::File)
        };
        let options = options.resolving(site::HOST);
        let http = reqwest::Client::new();
        let directory = environment.directory.path();
        let app = TestApp::start(&options, &environment.settings, &http, directory).await?;
        let account = app.operator.account(Quota::Unlimited).await?;
        let address =
            app.base_url.strip_prefix("http://").context("the base URL is not an http URL")?.parse()?;
        let processes = environment.cgroups.adopt("chain", app.process.pid())?;
        let api = Api::Public { path: RENDER, key: Some(account.key) };
        Ok(Self { kind: Kind::Chain, api, address, _server: Box::new(app), processes })
    }
}

/// The arguments that give the warm pages of a farm this much memory.
fn warm_memory(mebibytes: u32) -> [String; 2] {
    ["--warm-memory".to_owned(), mebibytes.to_string()]
}

/// A command that runs as an unprivileged user.
fn unprivileged(program: &Path, home: &Path) -> Result<Command> {
    ensure!(program.exists(), "{} does not exist: run bench/run, which installs it", program.display());
    process::unprivileged(program, home, Signal::SIGTERM)
}

/// A free port, for a server that does not support port 0.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
