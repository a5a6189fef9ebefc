//! The real server: `platen up` on ports of its own, with a database of its own.
//!
//! Invariant: one that is dropped has been stopped and reaped, and its files are gone.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::{
    client::Target,
    database::{Database, DatabaseKind},
    operator::{Account, Operator},
    process::Process,
    settings::Settings,
};

/// The token between the edge and a stand-in farm.
pub const FARM_TOKEN: &str = "the token of the stand-in farm";

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// On which kind of database.
    pub database: DatabaseKind,
    /// The farm, if not its own.
    pub farm_url: Option<String>,
    /// The deadline of a render in milliseconds, if not the default.
    pub deadline_ms: Option<u64>,
    /// More arguments.
    pub arguments: Vec<String>,
    /// Spin variables, by name, in place of their defaults.
    pub variables: Vec<(&'static str, String)>,
}

impl Options {
    /// A server with its own farm of one browser.
    #[must_use]
    pub fn own_farm(database: DatabaseKind) -> Self {
        // Several servers run side by side; one browser each is enough and starts soonest.
        let arguments = vec!["--browsers".to_owned(), "1".to_owned()];
        Self { database, farm_url: None, deadline_ms: None, arguments, variables: Vec::new() }
    }

    /// A server that sends its jobs there.
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

    /// With a name that leads to 127.0.0.1.
    #[must_use]
    pub fn resolving(mut self, host: &str) -> Self {
        self.arguments.extend(["--resolve".to_owned(), format!("{host}=127.0.0.1")]);
        self
    }
}

/// A running server.
#[derive(Debug)]
pub struct TestApp {
    // In this order they are dropped: the server before what it uses.
    /// The server's process.
    pub process: Process,
    /// Its database.
    pub database: Database,
    /// Where it listens, without a slash at the end.
    pub base_url: String,
    /// Its operator.
    pub operator: Operator,
    metrics_url: String,
    http: reqwest::Client,
    directory: TempDir,
}

impl TestApp {
    /// Runs a statement on its database, past the server.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        let Some(url) = self.database.url() else {
            let file = self.directory.path().join("data").join("platen.db");
            let connection = libsql::Builder::new_local(file).build().await?.connect()?;
            connection.busy_timeout(std::time::Duration::from_secs(30))?;
            connection.execute(sql, ()).await?;
            return Ok(());
        };
        let body = serde_json::json!({ "requests": [{ "type": "execute", "stmt": { "sql": sql } }] });
        let mut request = self.http.post(format!("{url}/v2/pipeline")).json(&body);
        if let Some(token) = self.database.token() {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await?.error_for_status()?.text().await?;
        ensure!(answer.contains(r#""type":"ok""#), "{sql}: {answer}");
        Ok(())
    }

    /// Where its metrics are.
    #[must_use]
    pub fn metrics_url(&self) -> &str {
        &self.metrics_url
    }

    /// Starts a server with its files below `parent`.
    ///
    /// # Errors
    /// When it does not start; the error holds its log.
    pub async fn start(
        options: &Options,
        settings: &Settings,
        http: &reqwest::Client,
        parent: &Path,
    ) -> Result<Self> {
        let platen = &settings.platen;
        ensure!(platen.exists(), "there is no {}: build it, or set PLATEN_BIN", platen.display());
        let directory = TempDir::with_prefix_in("app-", parent)?;
        let data = directory.path().join("data");
        let database = Database::start(options.database, settings, directory.path()).await?;

        let mut where_it_is = vec!["--data".to_owned(), data.to_str().context("a UTF-8 path")?.to_owned()];
        if let Some(url) = database.url() {
            where_it_is.extend(["--db".to_owned(), url.to_owned()]);
        }
        let token = database.token().map(|token| ("PLATEN_DB_TOKEN".to_owned(), token.to_owned()));
        let environment: Vec<_> = token.into_iter().collect();

        let mut command = Command::new(platen);
        command.arg("up").args(&where_it_is).envs(environment.iter().cloned());
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
        // SIGTERM, so that it closes its browsers and removes their profiles.
        let process = Process::start("platen up", &command, Signal::SIGTERM)?;
        let base_url = process.wait_for(|log| line_after(log, "platen is listening on ")).await?;
        let metrics_url = process.wait_for(|log| line_after(log, "metrics on ")).await?;
        let operator = Operator::new(platen.clone(), where_it_is, environment);
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

    /// A metric: by its name the sum over all its labels, or with exact labels one of them.
    ///
    /// # Errors
    /// When there is no such metric.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let url = format!("{}/metrics", self.metrics_url.trim_end_matches("/metrics"));
        let text = self.http.get(url).send().await?.error_for_status()?.text().await?;
        let values: Vec<f64> = text.lines().filter_map(|line| sample(line, name)).collect();
        ensure!(!values.is_empty(), "there is no metric {name} in\n{text}");
        Ok(values.iter().sum())
    }

    /// Its directory, which holds all its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// What follows a text up to the end of its line, or of its JSON string.
fn line_after(log: &str, text: &str) -> Option<String> {
    let (line, _) = log.split_once(text)?.1.split_once('\n')?;
    let (line, _) = line.split_once('"').unwrap_or((line, ""));
    Some(line.trim().trim_end_matches('/').to_owned())
}

/// The value of a line of the Prometheus text format, if it is about that metric.
fn sample(line: &str, name: &str) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let value = match rest.strip_prefix('{') {
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_once_their_line_is_whole() {
        assert_eq!(line_after("x\nmetrics on http://127.0.0.1:1", "metrics on "), None);
        let url = line_after("x\nmetrics on http://127.0.0.1:1/\ny", "metrics on ");
        assert_eq!(url.as_deref(), Some("http://127.0.0.1:1"));
    }

    #[test]
    fn samples_are_read_with_and_without_labels() {
        assert_eq!(sample("jobs_total 3", "jobs_total"), Some(3.0));
        assert_eq!(sample("jobs_total{a=\"}\",b=\"2\"} 4.5 1", "jobs_total"), Some(4.5));
        assert_eq!(sample("jobs_total{a=\"b\"} 2", "jobs_total{a=\"b\"}"), Some(2.0));
        assert_eq!(sample("jobs_total_created 3", "jobs_total"), None);
        assert_eq!(sample("# HELP jobs_total 3", "jobs_total"), None);
    }
}
