//! The operator's commands: accounts, keys and templates, made the way an operator makes them.
//!
//! Invariant: the database is never touched in any other way, so the suite knows nothing of its
//! tables.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// An account and a good key to it.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of the key's record.
    pub key_id: String,
    /// The key.
    pub key: String,
}

/// How many attempts a month an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// So many.
    Of(u64),
    /// As many as it likes.
    Unlimited,
}

/// Runs `platen` against one database.
#[derive(Debug, Clone)]
pub struct Operator {
    platen: PathBuf,
    database: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Operator {
    /// One who uses this binary with these flags and variables for the database.
    #[must_use]
    pub fn new(platen: PathBuf, database: Vec<String>, environment: Vec<(String, String)>) -> Self {
        Self { platen, database, environment }
    }

    /// Runs a command with `--json` and gives what it printed.
    ///
    /// # Errors
    /// When it fails; the error holds what it said.
    pub async fn run(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.output(arguments).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "platen {arguments:?} failed: {said}");
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("platen {arguments:?} printed {:?}", String::from_utf8_lossy(&output.stdout))
        })
    }

    async fn output(&self, arguments: &[&str]) -> Result<std::process::Output> {
        let mut command = Command::new(&self.platen);
        command.args(arguments).args(&self.database).arg("--json");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        output.with_context(|| format!("{} cannot be run", self.platen.display()))
    }

    /// Creates an account of a new name, with a key.
    ///
    /// # Errors
    /// When a command fails.
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
    ///
    /// # Errors
    /// When the command fails.
    pub async fn key(&self, account: &str) -> Result<Value> {
        self.run(&["key", "create", "--account", account, "--name", "test"]).await
    }

    /// Saves a template and gives its id.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn template(&self, account: &str, name: &str, html: &str) -> Result<String> {
        let file = tempfile::NamedTempFile::with_suffix(".html")?;
        std::fs::write(file.path(), html)?;
        let path = file.path().to_str().context("a temporary path is UTF-8")?;
        text(&self.run(&["template", "put", "--account", account, "--name", name, path]).await?, "id")
    }

    /// Invites somebody and gives the path of the link. `place` is `--operator`, or `--account` and
    /// an account.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn invite(&self, email: &str, place: &[&str]) -> Result<String> {
        let invite = self.run(&[&["invite", email, "--url", "http://host"], place].concat()).await?;
        Ok(text(&invite, "link")?.trim_start_matches("http://host").to_owned())
    }

    /// The attempts recorded for an account this month.
    ///
    /// # Errors
    /// When the command fails or does not list the account.
    pub async fn attempts(&self, account: &str) -> Result<u64> {
        let list = self.run(&["account", "list"]).await?;
        let found = list.as_array().and_then(|list| list.iter().find(|it| it["id"] == account));
        let record = found.with_context(|| format!("{account} is not listed"))?;
        record["attempts"].as_u64().with_context(|| format!("no attempts in {record}"))
    }
}

/// A text member of a JSON object.
///
/// # Errors
/// When there is none.
pub fn text(record: &Value, name: &str) -> Result<String> {
    Ok(record[name].as_str().with_context(|| format!("no {name} in {record}"))?.to_owned())
}
