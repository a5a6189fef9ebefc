//! The sides: how each is started and what it can do.
//!
//! Invariant: all run the Chromium that the options name (or the full one beside it, where the
//! name says so), as an unprivileged user with its sandbox on; one that is dropped has been stopped
//! and reaped, with all its helpers.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nix::{sys::signal::Signal, unistd::geteuid};
use platen_tests::{
    app::{Options as AppOptions, TestApp},
    database::DatabaseKind,
    operator::Quota,
    process::Process,
    settings::Settings,
    site,
};
use tempfile::TempDir;

use super::{
    call::{BROWSERLESS_TOKEN, Speech},
    meter::{Cgroups, Meter},
    page::{Output, Page, Source},
};

/// Which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Raw CDP on warm pages that are used again: the limit.
    Raw,
    /// The farm alone, jobs of one account.
    Farm,
    /// The farm alone, a new account for every job.
    FarmAccounts,
    /// `platen up`: HTTP, WebAssembly, libSQL, farm.
    Chain,
    /// puppeteer-cluster with contexts, on the same Chromium.
    Cluster,
    /// puppeteer-cluster with contexts, on full Chromium.
    ClusterChromium,
    /// browserless, on the same Chromium.
    Browserless,
    /// browserless, on full Chromium.
    BrowserlessChromium,
    /// `WeasyPrint`.
    Weasyprint,
}

impl Kind {
    /// What the report calls it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Raw => "raw CDP, warm page (limit)",
            Self::Farm => "**Platen farm**",
            Self::FarmAccounts => "**Platen farm, new account each job**",
            Self::Chain => "**Platen, whole chain**",
            Self::Cluster => "puppeteer-cluster, contexts",
            Self::ClusterChromium => "puppeteer-cluster, contexts, full Chromium",
            Self::Browserless => "browserless",
            Self::BrowserlessChromium => "browserless, full Chromium",
            Self::Weasyprint => "WeasyPrint",
        }
    }

    /// A name for files and groups.
    pub(crate) fn name(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it can render the page at all.
    pub(crate) fn can(self, page: &Page) -> bool {
        match self {
            Self::Raw | Self::Farm | Self::FarmAccounts | Self::Chain => true,
            Self::Weasyprint => {
                page.output == Output::Pdf && page.plain && matches!(page.source, Source::Html(_))
            }
            // Those that wait in real time take as long as it says, which needs no measuring.
            _ => page.wait_ms < 10_000,
        }
    }

    fn wants_full_chromium(self) -> bool {
        matches!(self, Self::ClusterChromium | Self::BrowserlessChromium)
    }
}

/// What all sides are started with.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// The Chromium of the comparison.
    pub(crate) chromium: PathBuf,
    /// Full Chromium.
    pub(crate) full_chromium: PathBuf,
    /// Where the peers are installed.
    pub(crate) tools: PathBuf,
    pub(crate) concurrency: usize,
    pub(crate) settings: Settings,
    pub(crate) cgroups: Cgroups,
    /// Homes and data.
    pub(crate) directory: TempDir,
}

/// A running side.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) speech: Speech,
    pub(crate) address: SocketAddr,
    // In this order they are dropped: the server before its account.
    _server: Server,
    pub(crate) meter: Meter,
}

#[derive(Debug)]
enum Server {
    Process { _process: Process },
    App { _app: Box<TestApp> },
}

/// The user that owns nothing.
const NOBODY: u32 = 65_534;
const TOKEN: &str = "the token of the bench";

impl Target {
    /// Starts a side, or says why it cannot be had here.
    pub(crate) async fn start(kind: Kind, around: &Surroundings) -> Result<Self> {
        ensure!(
            !kind.wants_full_chromium() || around.full_chromium.exists(),
            "full Chromium is not installed"
        );
        match kind {
            Kind::Chain => return Self::start_chain(around).await,
            Kind::Farm | Kind::FarmAccounts => return Self::start_farm(kind, around).await,
            _ => {}
        }
        let name = kind.name();
        let home = around.home(&name)?;
        let chromium = if kind.wants_full_chromium() { &around.full_chromium } else { &around.chromium };
        let rules = format!("MAP {} 127.0.0.1", site::HOST);
        let peers = around.tools.join("peers");
        let node = around.tools.join("node/node_modules/.bin/node");
        let mut speech = Speech::Plain;
        let mut command = match kind {
            Kind::Raw => {
                let mut command = unprivileged(&std::env::current_exe()?, &home)?;
                command.arg("raw").arg("--chromium").arg(chromium).args(["--resolve", &rules]);
                command.args(["--pages", &around.concurrency.to_string()]);
                command
            }
            Kind::Weasyprint => {
                let mut command = unprivileged(&around.tools.join("python/bin/python"), &home)?;
                command.arg(peers.join("weasyprint_server.py"));
                command
            }
            Kind::Cluster | Kind::ClusterChromium => {
                let mut command = unprivileged(&node, &home)?;
                command.arg(peers.join("puppeteer-cluster.mjs")).env("BENCH_RESOLVE", &rules);
                command
            }
            _ => {
                let launch = serde_json::json!({ "args": [format!("--host-resolver-rules={rules}")] });
                speech = Speech::Browserless { launch: launch.to_string() };
                let mut command = unprivileged(&node, &home)?;
                command.arg(peers.join("browserless.mjs")).current_dir(&peers);
                command.env("PLAYWRIGHT_BROWSERS_PATH", home.join("browsers"));
                command.envs([("HOST", "127.0.0.1"), ("TOKEN", BROWSERLESS_TOKEN), ("TIMEOUT", "120000")]);
                // Its log is off, as it would be written for every request and event.
                command.envs([("DEBUG", "quiet"), ("NODE_ENV", "production")]);
                command.env("PORT", free_port()?.to_string());
                command.env("CONCURRENT", around.concurrency.to_string()).env("QUEUED", "64");
                command
            }
        };
        command.env("BENCH_CHROMIUM", chromium).env("BENCH_CONCURRENCY", around.concurrency.to_string());
        let process = Process::start(&name, &command, Signal::SIGTERM)?;
        let address = process.wait_for(|log| address_after(log, "listening on http://")).await?;
        let meter = around.cgroups.adopt(&name, process.pid())?;
        Ok(Self { kind, speech, address, _server: Server::Process { _process: process }, meter })
    }

    async fn start_farm(kind: Kind, around: &Surroundings) -> Result<Self> {
        let platen = &around.settings.platen;
        let farm = platen.with_file_name("platen-farm");
        ensure!(farm.exists(), "there is no {}: build it first", farm.display());
        let mut command = Command::new(farm);
        command.args(["--listen", "127.0.0.1:0", "--resolve", &resolve()]);
        // One line a job, as it runs in production.
        command.env("PLATEN_FARM_TOKEN", TOKEN).env("PLATEN_CHROMIUM", &around.chromium);
        let process = Process::start(&kind.name(), &command, Signal::SIGTERM)?;
        let address = process.wait_for(|log| address_after(log, "listening address=")).await?;
        let meter = around.cgroups.adopt(&kind.name(), process.pid())?;
        let new_accounts = kind == Kind::FarmAccounts;
        let speech = Speech::Farm { token: TOKEN.to_owned(), new_accounts };
        Ok(Self { kind, speech, address, _server: Server::Process { _process: process }, meter })
    }

    async fn start_chain(around: &Surroundings) -> Result<Self> {
        let options = AppOptions {
            database: DatabaseKind::File,
            farm_url: None,
            deadline_ms: None,
            variables: Vec::new(),
            arguments: Vec::new(),
        };
        let options =
            AppOptions { arguments: vec!["--chromium".to_owned(), path_text(&around.chromium)?], ..options };
        let options = options.resolving(site::HOST);
        let http = reqwest::Client::new();
        let app = TestApp::start(&options, &around.settings, &http, around.directory.path()).await?;
        let account = app.operator.account(Quota::Unlimited).await?;
        let address = app.base_url.strip_prefix("http://").context("an http URL")?.parse()?;
        let meter = around.cgroups.adopt("chain", app.process.pid())?;
        let speech = Speech::Public { key: account.key };
        Ok(Self { kind: Kind::Chain, speech, address, _server: Server::App { _app: Box::new(app) }, meter })
    }
}

impl Surroundings {
    /// A directory of a side's own that it may write to.
    fn home(&self, name: &str) -> Result<PathBuf> {
        let home = self.directory.path().join(name);
        fs::create_dir(&home)?;
        if geteuid().is_root() {
            chown(&home, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(home)
    }
}

/// A program as a user who owns nothing but its home, because Chromium has no sandbox as root.
fn unprivileged(program: &Path, home: &Path) -> Result<Command> {
    ensure!(program.exists(), "there is no {}: run bench/run, which installs it", program.display());
    let mut command = Command::new("setpriv");
    command.args(["--no-new-privs", "--pdeathsig", "TERM"]);
    if geteuid().is_root() {
        let nobody = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()];
        command.args(nobody);
    }
    command.arg("--").arg(program).env("HOME", home).env("TMPDIR", home).current_dir(home);
    Ok(command)
}

fn resolve() -> String {
    format!("{}=127.0.0.1", site::HOST)
}

fn path_text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("a UTF-8 path")?.to_owned())
}

/// A port that was free a moment ago, for a server that cannot choose one by itself.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The address behind a text, once its line is whole.
pub(crate) fn address_after(log: &str, text: &str) -> Option<SocketAddr> {
    let (line, _) = log.split_once(text)?.1.split_once('\n')?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_from_a_whole_line() {
        assert_eq!(address_after("listening on http://127.0.0.1:80", "http://"), None);
        let address = address_after("x\nlistening on http://127.0.0.1:80\n", "listening on http://");
        assert_eq!(address, "127.0.0.1:80".parse().ok());
    }
}
