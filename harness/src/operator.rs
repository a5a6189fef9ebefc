//! The operator's commands: runs `platen` against one database.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::sync::Mutex;

/// Commands of [`Operator::run`] run one at a time: each is a client of its own, and sqld was seen to stop for a minute
/// while several clients write on a busy machine.
static COMMANDS: Mutex<()> = Mutex::const_new(());

/// An account and a valid key of it.
#[derive(Debug, Clone)]
pub struct Account {
    pub id: String,
    pub name: String,
    /// The id of the key's record.
    pub key_id: String,
    pub key: String,
}

/// How many attempts a month an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    Of(u64),
    Unlimited,
}

/// Runs `platen` with the flags and variables of one database.
#[derive(Debug, Clone)]
pub struct Operator {
    platen: PathBuf,
    directory: Option<PathBuf>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Operator {
    /// Runs this binary with these arguments and variables for the database.
    pub fn new(platen: PathBuf, arguments: Vec<String>, environment: Vec<(String, String)>) -> Self {
        Self { platen, directory: None, arguments, environment }
    }

    /// Runs this binary in a directory, on the database that it finds there, without any variable of the test's
    /// environment.
    pub fn in_directory(platen: &Path, directory: &Path) -> Self {
        let directory = Some(directory.to_owned());
        Self { platen: platen.to_owned(), directory, arguments: Vec::new(), environment: Vec::new() }
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A command, which is not started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.platen);
        if let Some(directory) = &self.directory {
            command.env_clear().current_dir(directory);
        }
        command.args(arguments).args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command and returns its exit status and output.
    pub fn output(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command(arguments);
        command.output().with_context(|| format!("{} cannot be run", self.platen.display()))
    }

    /// Runs a command with `--json` and returns what it printed.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.output(&[arguments, &["--json"]].concat())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "platen {arguments:?} failed: {errors}");
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("platen {arguments:?} printed {:?}", String::from_utf8_lossy(&output.stdout))
        })
    }

    /// Runs a command without blocking the executor, after those of other tests.
    pub async fn run(&self, arguments: &[&str]) -> Result<Value> {
        let _turn = COMMANDS.lock().await;
        let (operator, arguments) =
            (self.clone(), arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        tokio::task::spawn_blocking(move || {
            operator.json(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .await?
    }

    /// Creates an account of a new name, with a key.
    pub async fn account(&self, quota: Quota) -> Result<Account> {
        let name = format!("Account {:016x}", rand::random::<u64>());
        let quota = match quota {
            Quota::Of(attempts) => attempts.to_string(),
            Quota::Unlimited => "unlimited".to_owned(),
        };
        let account = self.run(&["account", "create", &name, "--quota", &quota]).await?;
        let id = text(&account, "id")?;
        let key = self.key(&id).await?;
        Ok(Account { id, name, key_id: text(&key, "id")?, key: text(&key, "key")? })
    }

    /// Creates one more key of an account: its record with the secret.
    pub async fn key(&self, account: &str) -> Result<Value> {
        self.run(&["key", "create", "--account", account, "--name", "test"]).await
    }

    /// Saves a template and returns its id.
    pub async fn template(&self, account: &str, name: &str, html: &str) -> Result<String> {
        self.template_with(account, name, html, None).await
    }

    /// Saves a template with the options of a file, and returns its id.
    pub async fn template_with(
        &self,
        account: &str,
        name: &str,
        html: &str,
        options: Option<&Path>,
    ) -> Result<String> {
        let file = tempfile::NamedTempFile::with_suffix(".html")?;
        std::fs::write(file.path(), html)?;
        let path = file.path().to_str().context("a temporary path is UTF-8")?;
        let mut arguments = vec!["template", "put", "--account", account, "--name", name, path];
        if let Some(options) = options {
            arguments.extend(["--options", options.to_str().context("a path is UTF-8")?]);
        }
        text(&self.run(&arguments).await?, "id")
    }

    /// Saves a template in Jinja and returns its id.
    pub async fn jinja_template(&self, account: &str, name: &str, template: &str) -> Result<String> {
        let file = tempfile::NamedTempFile::with_suffix(".html")?;
        std::fs::write(file.path(), template)?;
        let path = file.path().to_str().context("a temporary path is UTF-8")?;
        let put = ["template", "put", "--account", account, "--name", name, "--language", "jinja", path];
        text(&self.run(&put).await?, "id")
    }

    /// Invites a user and returns the path of the link. `target` is `--operator`, or `--account` and an account.
    pub async fn invite(&self, email: &str, target: &[&str]) -> Result<String> {
        let invite = self.run(&[&["invite", email, "--url", "http://host"], target].concat()).await?;
        Ok(text(&invite, "link")?.trim_start_matches("http://host").to_owned())
    }

    /// The attempts recorded for an account this month.
    pub async fn attempts(&self, account: &str) -> Result<u64> {
        let list = self.run(&["account", "list"]).await?;
        let found = list.as_array().and_then(|list| list.iter().find(|it| it["id"] == account));
        let record = found.with_context(|| format!("{account} is not listed"))?;
        record["attempts"].as_u64().with_context(|| format!("no attempts in {record}"))
    }
}

/// A text member of a JSON object.
pub fn text(record: &Value, name: &str) -> Result<String> {
    Ok(record[name].as_str().with_context(|| format!("no {name} in {record}"))?.to_owned())
}
