//! The server under test: `platen up` on free ports with a new database.
//!
//! Invariant: a dropped server has been stopped and reaped, and its files are deleted.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    client::Target,
    database::{Database, DatabaseKind},
    metrics,
    operator::{Account, Operator},
    process::{Process, rest_of_line},
    settings::Settings,
    wait,
};

/// The token between the edge and a stand-in farm.
pub const FARM_TOKEN: &str = "the token of the stand-in farm";

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The kind of database.
    pub database: DatabaseKind,
    /// The URL of the farm; `None` is a farm within the server.
    pub farm_url: Option<String>,
    /// The deadline of a render in milliseconds; `None` is the default.
    pub deadline_ms: Option<u64>,
    /// More arguments.
    pub arguments: Vec<String>,
    /// Spin variables by name that differ from their defaults.
    pub variables: Vec<(&'static str, String)>,
}

impl Options {
    /// A server with a farm of one browser within it.
    #[must_use]
    pub fn own_farm(database: DatabaseKind) -> Self {
        // Several servers run at the same time; one browser each is enough and starts fastest.
        let arguments = vec!["--browsers".to_owned(), "1".to_owned()];
        Self { database, farm_url: None, deadline_ms: None, arguments, variables: Vec::new() }
    }

    /// A server that sends its jobs to this URL.
    #[must_use]
    pub fn with_farm(database: DatabaseKind, farm_url: String) -> Self {
        Self {
            database,
            farm_url: Some(farm_url),
            deadline_ms: None,
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// With another deadline.
    #[must_use]
    pub fn deadline_ms(self, deadline_ms: u64) -> Self {
        Self { deadline_ms: Some(deadline_ms), ..self }
    }

    /// With another value of a Spin variable.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: u32) -> Self {
        self.variables.push((name, value.to_string()));
        self
    }

    /// With a name that it resolves to 127.0.0.1.
    #[must_use]
    pub fn resolving(mut self, host: &str) -> Self {
        self.arguments.extend(["--resolve".to_owned(), format!("{host}=127.0.0.1")]);
        self
    }
}

/// A running server.
#[derive(Debug)]
pub struct TestApp {
    // Fields are dropped in this order: the server before what it uses.
    /// The server's process.
    pub process: Process,
    /// Its database.
    pub database: Database,
    /// Where it listens, without a slash at the end.
    pub base_url: String,
    /// The operator's commands on its database.
    pub operator: Operator,
    metrics_url: String,
    http: reqwest::Client,
    directory: TempDir,
}

impl TestApp {
    /// Runs a statement directly on its database and returns the first column of the first row if it is an
    /// integer.
    pub async fn execute(&self, sql: &str) -> Result<Option<i64>> {
        let Some(url) = self.database.url() else {
            let file = self.directory.path().join("data").join("platen.db");
            let connection = libsql::Builder::new_local(file).build().await?.connect()?;
            connection.busy_timeout(wait::MAX_WAIT)?;
            let row = connection.query(sql, ()).await?.next().await?;
            return Ok(row.and_then(|row| row.get::<i64>(0).ok()));
        };
        let body = json!({ "requests": [{ "type": "execute", "stmt": { "sql": sql } }] });
        let mut request = self.http.post(format!("{url}/v2/pipeline")).json(&body);
        if let Some(token) = self.database.token() {
            request = request.bearer_auth(token);
        }
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        let result = &answer["results"][0];
        ensure!(result["type"] == "ok", "{sql}: {answer}");
        // Hrana: integers are text.
        let value = result.pointer("/response/result/rows/0/0/value").and_then(Value::as_str);
        Ok(value.and_then(|value| value.parse().ok()))
    }

    /// The URL of its metrics.
    #[must_use]
    pub fn metrics_url(&self) -> &str {
        &self.metrics_url
    }

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
        let data = directory.path().join("data");
        let database = Database::start(options.database, settings, directory.path()).await?;

        let mut database_arguments =
            vec!["--data".to_owned(), data.to_str().context("a UTF-8 path")?.to_owned()];
        if let Some(url) = database.url() {
            database_arguments.extend(["--db".to_owned(), url.to_owned()]);
        }
        let token = database.token().map(|token| ("PLATEN_DB_TOKEN".to_owned(), token.to_owned()));
        let environment: Vec<_> = token.into_iter().collect();

        let mut command = Command::new(platen);
        command.arg("up").args(&database_arguments).envs(environment.iter().cloned());
        command.args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
        command.arg("--manifest").arg(&settings.manifest).args(&options.arguments);
        if let Some(url) = &options.farm_url {
            command.args(["--farm-url", url]).env("PLATEN_FARM_TOKEN", FARM_TOKEN);
        }
        if let Some(deadline) = options.deadline_ms {
            command.env("SPIN_VARIABLE_DEADLINE_MS", deadline.to_string());
        }
        for (name, value) in &options.variables {
            command.env(format!("SPIN_VARIABLE_{}", name.to_ascii_uppercase()), value);
        }
        // SIGTERM, so that it closes its browsers and deletes their profiles.
        let process = Process::start("platen up", &command, Signal::SIGTERM)?;
        let url = |log: &str, text: &str| Some(rest_of_line(log, text)?.trim_end_matches('/').to_owned());
        let base_url = process.wait_for(|log| url(log, "platen is listening on ")).await?;
        let metrics_url = process.wait_for(|log| url(log, "metrics on ")).await?;
        let operator = Operator::new(platen.clone(), database_arguments, environment);
        Ok(Self { process, database, base_url, operator, metrics_url, http: http.clone(), directory })
    }

    /// The server with the key of an account.
    #[must_use]
    pub fn target(&self, account: &Account) -> Target {
        Target {
            http: self.http.clone(),
            base_url: self.base_url.clone(),
            key: account.key.clone(),
            template_id: None,
        }
    }

    /// The value of a metric, see [`metrics::read`].
    pub async fn metric(&self, name: &str) -> Result<u64> {
        let value = metrics::read(&self.http, &self.metrics_url, name).await?;
        value.with_context(|| format!("no metric {name}"))
    }

    /// Waits until a metric has this value.
    pub async fn until_metric(&self, name: &str, value: u64) -> Result<()> {
        metrics::until(&self.http, &self.metrics_url, name, value).await
    }

    /// The directory that holds all its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}
