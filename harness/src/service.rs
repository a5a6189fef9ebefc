//! A running service whose database is reachable: requests to it, the operator's commands, and statements.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    client::Target,
    operator::{Account, Operator, Quota},
    wait,
};

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseLocation {
    /// The path of a file or the URL of a libSQL server, as `--db` takes it.
    pub address: String,
    /// The token that the libSQL server requires.
    pub token: Option<String>,
}

impl DatabaseLocation {
    /// The URL of a libSQL server.
    pub fn url(&self) -> Option<&str> {
        let is_url = ["http://", "https://", "libsql://"].iter().any(|it| self.address.starts_with(it));
        is_url.then_some(&self.address)
    }

    /// The operator's commands on it.
    pub fn operator(&self, platen: &Path) -> Operator {
        let token = self.token.iter().map(|token| ("PLATEN_DB_TOKEN".to_owned(), token.clone()));
        Operator::new(platen.to_owned(), vec!["--db".to_owned(), self.address.clone()], token.collect())
    }
}

/// A running service and its database.
#[derive(Debug)]
pub struct Service {
    /// Where it listens, without a slash at the end.
    pub base_url: String,
    /// The operator's commands on its database.
    pub operator: Operator,
    database: DatabaseLocation,
    http: reqwest::Client,
}

impl Service {
    /// A service that already runs. `platen` is the binary for the operator's commands.
    pub fn new(base_url: String, platen: &Path, database: DatabaseLocation, http: reqwest::Client) -> Self {
        Self { base_url, operator: database.operator(platen), database, http }
    }

    /// The service with the key of an account.
    pub fn target(&self, account: &Account) -> Target {
        Target {
            http: self.http.clone(),
            base_url: self.base_url.clone(),
            key: account.key.clone(),
            template_id: None,
        }
    }

    /// A new account, and the service with its key.
    pub async fn account(&self, quota: Quota) -> Result<(Account, Target)> {
        let account = self.operator.account(quota).await?;
        let target = self.target(&account);
        Ok((account, target))
    }

    /// The number of attempts of an account whose rows meet a condition in SQL.
    pub async fn rows(&self, account: &Account, condition: &str) -> Result<i64> {
        let sql =
            format!("SELECT count(*) FROM attempts WHERE account_id = '{}' AND {condition}", account.id);
        self.execute(&sql).await?.context("a count")
    }

    /// Waits until exactly this many do.
    pub async fn until_rows(&self, account: &Account, condition: &str, expected: i64) -> Result<()> {
        wait::until_true(&format!("{expected} rows with {condition}"), async || {
            let count = self.rows(account, condition).await?;
            ensure!(count <= expected, "{count} rows with {condition} instead of {expected}");
            Ok(count == expected)
        })
        .await
    }

    /// Runs a statement directly on its database and returns the first column of the first row if it is an
    /// integer.
    pub async fn execute(&self, sql: &str) -> Result<Option<i64>> {
        let Some(url) = self.database.url() else {
            let connection = libsql::Builder::new_local(&self.database.address).build().await?.connect()?;
            connection.busy_timeout(wait::MAX_WAIT)?;
            let row = connection.query(sql, ()).await?.next().await?;
            return Ok(row.and_then(|row| row.get::<i64>(0).ok()));
        };
        // Without the second request sqld keeps the stream, of which it has 128, for some seconds.
        let body =
            json!({ "requests": [{ "type": "execute", "stmt": { "sql": sql } }, { "type": "close" }] });
        let url = url.replacen("libsql://", "https://", 1);
        let answer = wait::until_some("a statement for sqld", async || {
            let mut request = self.http.post(format!("{url}/v2/pipeline")).json(&body);
            if let Some(token) = &self.database.token {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await?;
            // Beside a test with hundreds of requests at once: sqld has 128 streams and 128 places to wait for one, for 5 s.
            Ok((answer.status() != StatusCode::TOO_MANY_REQUESTS).then_some(answer))
        })
        .await?;
        let answer: Value = answer.error_for_status()?.json().await?;
        let result = &answer["results"][0];
        ensure!(result["type"] == "ok", "{sql}: {answer}");
        // Hrana: integers are text.
        let value = result.pointer("/response/result/rows/0/0/value").and_then(Value::as_str);
        Ok(value.and_then(|value| value.parse().ok()))
    }
}
