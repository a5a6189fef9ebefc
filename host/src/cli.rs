//! The commands: their flags, and what they print.
//!
//! Invariant: every command on the database takes `--data`, `--db` and `--json`, and prints one
//! JSON value with `--json`.

pub(crate) mod account;
pub(crate) mod invite;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod render;
pub(crate) mod retention;
pub(crate) mod template;
pub(crate) mod up;

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Result};
use clap::Args;
use secrecy::SecretString;
use serde::Serialize;

use crate::{
    admin::Admin,
    db::{Database, DbError, Location, Purpose},
};

#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// Directory of the server's files; the database is platen.db in it
    #[arg(long, env = "PLATEN_DATA", value_name = "DIR", default_value = ".platen")]
    pub(crate) data: PathBuf,

    /// Another database: a SQLite file, or the URL of a libSQL server (http, https or libsql),
    /// whose token is read from the environment variable `PLATEN_DB_TOKEN`
    #[arg(long, env = "PLATEN_DB", value_name = "FILE|URL")]
    pub(crate) db: Option<Location>,
}

impl DatabaseArgs {
    pub(crate) fn location(&self) -> Location {
        self.db.clone().unwrap_or_else(|| Location::in_data(&self.data))
    }

    pub(crate) async fn open(&self, purpose: Purpose) -> Result<Database> {
        let location = self.location();
        match Database::open(&location, secret("PLATEN_DB_TOKEN"), purpose).await {
            Err(DbError::Missing(path)) => {
                anyhow::bail!(
                    "there is no database at {path}: run `platen migrate` (with the same --db or --data)"
                )
            }
            other => other.with_context(|| format!("the database {location} cannot be used")),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl OutputArgs {
    /// Prints a value as JSON or as its text.
    fn print<T: Serialize + ?Sized>(&self, value: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
        let line = if self.json { serde_json::to_string(value)? } else { text(value) };
        match writeln!(io::stdout(), "{line}") {
            // A reader that has read enough, such as `head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl CommonArgs {
    /// Opens a database that has the schema of this binary.
    async fn open(&self) -> Result<Admin> {
        let database = self.database.open(Purpose::Operate).await?;
        crate::migrate::check(&database)
            .await
            .with_context(|| format!("the database {} cannot be used", self.database.location()))?;
        Ok(Admin::new(&database))
    }
}

/// A secret from the environment; `None` if the variable is unset or empty.
fn secret(name: &str) -> Option<SecretString> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).map(SecretString::from)
}

/// Columns of text, as wide as their widest cell.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let widths: Vec<usize> =
        (0..N).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
