//! What cases share: the settings, for each database one server with a real farm and one with a stand-in farm,
//! and the directory of all files.
//!
//! Invariant: the first case that uses a shared server starts it; dropping the suite stops it. If it does not
//! start, every case that uses it fails with the same reason.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, anyhow};
use platen_shared::wire;
use tempfile::TempDir;
use tokio::sync::{OnceCell, watch};

use crate::{
    app::{FARM_TOKEN, Options, TestApp},
    client::Target,
    database::DatabaseKind,
    farm::StandInFarm,
    operator::{Account, Quota},
    settings::{Settings, crate_dir},
    site::{self, Site},
    wait::MAX_WAIT,
};

/// The name of the fixture template.
pub const TEMPLATE_NAME: &str = "Fixture Template";

/// A server with a real farm, and a site that its renders may reach.
#[derive(Debug)]
pub struct Real {
    /// The server.
    pub app: TestApp,
    /// The site.
    pub site: Site,
    common: Target,
}

/// A server with a stand-in farm.
#[derive(Debug)]
pub struct StandIn {
    /// The server.
    pub app: TestApp,
    /// The stand-in farm.
    pub farm: StandInFarm,
    /// An account without a quota, for cases that count nothing.
    pub account: Account,
    /// The account's key and template.
    pub common: Target,
}

type Shared<T> = OnceCell<Result<Arc<T>, String>>;

#[derive(Debug, Default)]
struct Servers {
    real: Shared<Real>,
    stand_in: Shared<StandIn>,
}

/// One run of the suite.
#[derive(Debug)]
pub struct Suite {
    servers: Mutex<HashMap<DatabaseKind, Arc<Servers>>>,
    logs: Mutex<Vec<watch::Receiver<String>>>,
    settings: Settings,
    http: reqwest::Client,
    directory: TempDir,
}

impl Suite {
    /// Prepares a run without starting a server.
    pub fn new(settings: Settings) -> Result<Arc<Self>> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // Longer than every wait: it only ends a run whose server hangs.
            .timeout(2 * MAX_WAIT)
            .build()?;
        let directory = TempDir::with_prefix("platen-tests-")?;
        Ok(Arc::new(Self { servers: Mutex::default(), logs: Mutex::default(), settings, http, directory }))
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The directory of all files of this run.
    #[must_use]
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// What the servers logged for the requests whose ids are in a failure.
    #[must_use]
    pub fn log_lines_of(&self, failure: &str) -> Vec<String> {
        let mark = format!("\"{}\": \"", wire::REQUEST_ID);
        let ids: Vec<&str> = failure.split(&mark).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let matching = |log: &watch::Receiver<String>| -> Vec<String> {
            let log = log.borrow();
            log.lines().filter(|line| ids.iter().any(|id| line.contains(id))).map(str::to_owned).collect()
        };
        logs.iter().flat_map(matching).collect()
    }

    fn servers(&self, database: DatabaseKind) -> Arc<Servers> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry(database).or_default())
    }
}

/// What one case on one database can use.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The run.
    pub suite: Arc<Suite>,
    /// The database.
    pub database: DatabaseKind,
}

impl Stage {
    /// The server under test with the key of a new account, or of the account that the environment sets. A new
    /// account has the fixture template.
    pub async fn target(&self) -> Result<Target> {
        if let Some(target) = self.external() {
            return Ok(target);
        }
        let real = self.real().await?;
        let account = real.app.operator.account(Quota::Of(1_000)).await?;
        with_fixture(&real.app, &account).await
    }

    /// The server under test with the key of an account that other cases use at the same time, for cases that
    /// change and count nothing.
    pub async fn common(&self) -> Result<Target> {
        match self.external() {
            Some(target) => Ok(target),
            None => Ok(self.real().await?.common.clone()),
        }
    }

    fn external(&self) -> Option<Target> {
        let external = self.suite.settings.external.as_ref()?;
        Some(Target {
            http: self.suite.http.clone(),
            base_url: external.base_url.clone(),
            key: external.key.clone(),
            template_id: external.template_id.clone(),
        })
    }

    /// The shared server with a real farm.
    pub async fn real(&self) -> Result<Arc<Real>> {
        let servers = self.suite.servers(self.database);
        shared(&servers.real, async {
            let site = Site::start().await?;
            let app = self.start(&Options::own_farm(self.database).resolving(site::HOST)).await?;
            let account = app.operator.account(Quota::Unlimited).await?;
            let common = with_fixture(&app, &account).await?;
            Ok(Real { app, site, common })
        })
        .await
    }

    /// The shared server with a stand-in farm.
    pub async fn stand_in(&self) -> Result<Arc<StandIn>> {
        let servers = self.suite.servers(self.database);
        shared(&servers.stand_in, async { self.start_stand_in(None).await }).await
    }

    /// A server with a stand-in farm for this case alone.
    pub async fn start_stand_in(&self, deadline_ms: Option<u64>) -> Result<StandIn> {
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let options = Options { deadline_ms, ..Options::with_farm(self.database, farm.url()) };
        let app = self.start(&options).await?;
        let account = app.operator.account(Quota::Unlimited).await?;
        let common = with_fixture(&app, &account).await?;
        Ok(StandIn { app, farm, account, common })
    }

    /// A server for this case alone.
    pub async fn start(&self, options: &Options) -> Result<TestApp> {
        let Suite { settings, http, directory, logs, .. } = &*self.suite;
        let app = TestApp::start(options, settings, http, directory.path()).await?;
        logs.lock().unwrap_or_else(PoisonError::into_inner).push(app.process.follow_log());
        Ok(app)
    }
}

async fn shared<T>(cell: &Shared<T>, start: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
    let started =
        cell.get_or_init(async || start.await.map(Arc::new).map_err(|error| format!("{error:#}"))).await;
    started.clone().map_err(|reason| anyhow!(reason)).context("the server for this case did not start")
}

async fn with_fixture(app: &TestApp, account: &Account) -> Result<Target> {
    let html = std::fs::read_to_string(crate_dir().join("fixtures/template.html"))?;
    let template_id = app.operator.template(&account.id, TEMPLATE_NAME, &html).await?;
    Ok(Target { template_id: Some(template_id), ..app.target(account) })
}
