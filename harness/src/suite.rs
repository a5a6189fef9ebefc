//! What cases share: the settings, for each deployment one server with a real farm and one with a stand-in farm,
//! and the directory of all files.
//!
//! Invariant: the first case that uses a shared server starts it; dropping the suite stops it. If it does not
//! start, every case that uses it fails with the same reason.

use std::{
    collections::HashMap,
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use platen_shared::wire;
use tempfile::TempDir;
use tokio::sync::{OnceCell, watch};

use crate::{
    app::{FARM_TOKEN, Options, TestApp},
    client::Target,
    deployment::Deployment,
    farm::StandInFarm,
    operator::{Account, Quota},
    service::Service,
    settings::{Settings, tests_dir},
    site::{self, Site},
    wait::MAX_WAIT,
};

pub const TEMPLATE_NAME: &str = "Fixture Template";

/// A server with a real farm, and a site that its renders may reach.
#[derive(Debug)]
pub struct Real {
    pub app: TestApp,
    pub site: Site,
    common: Target,
}

/// A server with a stand-in farm.
#[derive(Debug)]
pub struct StandIn {
    pub app: TestApp,
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

#[derive(Debug)]
pub struct Suite {
    servers: Mutex<HashMap<Deployment, Arc<Servers>>>,
    logs: Mutex<Vec<watch::Receiver<String>>>,
    settings: Settings,
    http: reqwest::Client,
    /// The external server, if its database is reachable.
    external: Option<Arc<Service>>,
    external_common: OnceCell<Result<Target, String>>,
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
        // The browsers' user may enter the directory: their profiles are below it.
        let permissions = Permissions::from_mode(0o711);
        let directory =
            tempfile::Builder::new().prefix("platen-tests-").permissions(permissions).tempdir()?;
        let external = settings.external.as_ref().and_then(|external| {
            let (base_url, database) = (external.base_url.clone(), external.database.clone()?);
            Some(Arc::new(Service::new(base_url, &settings.platen, database, http.clone())))
        });
        Ok(Arc::new(Self {
            servers: Mutex::default(),
            logs: Mutex::default(),
            settings,
            http,
            external,
            external_common: OnceCell::new(),
            directory,
        }))
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The directory of all files of this run.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// What the servers logged for the requests whose ids are in a failure.
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

    fn servers(&self, deployment: Deployment) -> Arc<Servers> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry(deployment).or_default())
    }
}

/// What one case on one deployment can use.
#[derive(Debug, Clone)]
pub struct Stage {
    pub suite: Arc<Suite>,
    pub deployment: Deployment,
}

impl Stage {
    /// The server under test with the key of a new account, or of the account that the environment sets. A new
    /// account has the fixture template.
    pub async fn target(&self) -> Result<Target> {
        if let Some(target) = self.external_target() {
            return Ok(target);
        }
        let service = self.real_service().await?;
        let account = service.operator.account(Quota::Of(1_000)).await?;
        with_fixture(&service, &account).await
    }

    /// The server under test with the key of an account that other cases use at the same time, for cases that
    /// change and count nothing.
    pub async fn common(&self) -> Result<Target> {
        if let Some(target) = self.external_target() {
            return Ok(target);
        }
        let Some(external) = &self.suite.external else { return Ok(self.real().await?.common.clone()) };
        let start = async || -> Result<Target> {
            with_fixture(external, &external.operator.account(Quota::Unlimited).await?).await
        };
        let common = &self.suite.external_common;
        let target = common.get_or_init(async || start().await.map_err(|error| format!("{error:#}"))).await;
        target.clone().map_err(|reason| anyhow!(reason)).context("no account on the external server")
    }

    /// An external server whose database is not reachable, with the key that the environment sets.
    fn external_target(&self) -> Option<Target> {
        let external = self.suite.settings.external.as_ref().filter(|it| it.database.is_none())?;
        Some(Target {
            http: self.suite.http.clone(),
            base_url: external.base_url.clone(),
            key: external.key.clone()?,
            template_id: external.template_id.clone(),
        })
    }

    pub fn is_external(&self) -> bool {
        self.suite.settings.external.is_some()
    }

    /// The external server, or the shared server with a stand-in farm: for cases that check no file.
    pub async fn service(&self) -> Result<Arc<Service>> {
        match &self.suite.external {
            Some(external) => Ok(Arc::clone(external)),
            None => Ok(self.stand_in().await?.app.service()),
        }
    }

    /// This service and a new account.
    pub async fn account(&self, quota: Quota) -> Result<(Arc<Service>, Account)> {
        let service = self.service().await?;
        let account = service.operator.account(quota).await?;
        Ok((service, account))
    }

    /// This service, a new account, and the service with its key.
    pub async fn account_with_key(&self, quota: Quota) -> Result<(Arc<Service>, Account, Target)> {
        let service = self.service().await?;
        let (account, target) = service.account(quota).await?;
        Ok((service, account, target))
    }

    /// The external server, or the shared server with a real farm.
    pub async fn real_service(&self) -> Result<Arc<Service>> {
        match &self.suite.external {
            Some(external) => Ok(Arc::clone(external)),
            None => Ok(self.real().await?.app.service()),
        }
    }

    /// Checks that the stand-in farm behind [`service`](Self::service) has received no job of an account. The farm
    /// of an external server cannot be asked.
    pub async fn no_job_was_received(&self, account: &Account) -> Result<()> {
        if self.suite.external.is_none() {
            let received = self.stand_in().await?.farm.received_from(&account.id);
            ensure!(received.is_empty(), "the farm received {received:?}");
        }
        Ok(())
    }

    /// The shared server with a real farm.
    pub async fn real(&self) -> Result<Arc<Real>> {
        let servers = self.suite.servers(self.deployment);
        shared(&servers.real, async {
            let site = Site::start().await?;
            let app = self.start(&Options::own_farm(self.deployment).resolving(site::HOST)).await?;
            let account = app.operator.account(Quota::Unlimited).await?;
            let common = with_fixture(&app, &account).await?;
            Ok(Real { app, site, common })
        })
        .await
    }

    /// The shared server with a stand-in farm.
    pub async fn stand_in(&self) -> Result<Arc<StandIn>> {
        let servers = self.suite.servers(self.deployment);
        shared(&servers.stand_in, async { self.start_stand_in(None).await }).await
    }

    /// A server with a stand-in farm for this case alone.
    pub async fn start_stand_in(&self, deadline_ms: Option<u64>) -> Result<StandIn> {
        self.start_stand_in_with(|options| Options { deadline_ms, ..options }).await
    }

    /// Such a server, with a new account and its key.
    pub async fn start_stand_in_for(&self, quota: Quota) -> Result<(StandIn, Account, Target)> {
        let stand_in = self.start_stand_in(None).await?;
        let (account, target) = stand_in.app.account(quota).await?;
        Ok((stand_in, account, target))
    }

    /// A server with a stand-in farm and changed options for this case alone.
    pub async fn start_stand_in_with(&self, change: impl FnOnce(Options) -> Options) -> Result<StandIn> {
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let app = self.start(&change(Options::with_farm(self.deployment, farm.url()))).await?;
        let account = app.operator.account(Quota::Unlimited).await?;
        let common = with_fixture(&app, &account).await?;
        Ok(StandIn { app, farm, account, common })
    }

    /// One more server on the database and with the farm of another one.
    pub async fn start_beside(&self, first: &StandIn, deadline_ms: Option<u64>) -> Result<TestApp> {
        let options = Options {
            database: Some(first.app.database.location().clone()),
            deadline_ms,
            ..Options::with_farm(self.deployment, first.farm.url())
        };
        self.start(&options).await
    }

    /// A server for this case alone.
    pub async fn start(&self, options: &Options) -> Result<TestApp> {
        let Suite { settings, http, directory, logs, .. } = &*self.suite;
        let app = TestApp::start(options, settings, http, directory.path()).await?;
        logs.lock().unwrap_or_else(PoisonError::into_inner).extend(app.follow_logs());
        Ok(app)
    }
}

async fn shared<T>(cell: &Shared<T>, start: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
    let started =
        cell.get_or_init(async || start.await.map(Arc::new).map_err(|error| format!("{error:#}"))).await;
    started.clone().map_err(|reason| anyhow!(reason)).context("the server for this case did not start")
}

async fn with_fixture(service: &Service, account: &Account) -> Result<Target> {
    let html = std::fs::read_to_string(tests_dir().join("fixtures/template.html"))?;
    let template_id = service.operator.template(&account.id, TEMPLATE_NAME, &html).await?;
    Ok(Target { template_id: Some(template_id), ..service.target(account) })
}
