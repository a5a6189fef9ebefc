//! The commands: their flags, and what they print.
//!
//! Invariant: every command on the database takes `--data` and `--db`, and, except `mcp`, `--json`, with which it prints
//! one JSON value.

pub(crate) mod account;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod database;
pub(crate) mod invite;
pub(crate) mod key;
pub(crate) mod link;
pub(crate) mod mcp;
pub(crate) mod render;
pub(crate) mod retention;
pub(crate) mod template;
pub(crate) mod up;
pub(crate) mod usage;
pub(crate) mod user;

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Error, Result};
use clap::Args;
use platen_farm::InvalidUpstream;
use platen_shared::id::AccountId;
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
    /// whose token is read from --db-token-file or the environment variable `PLATEN_DB_TOKEN`
    #[arg(long, env = "PLATEN_DB", value_name = "FILE|URL")]
    pub(crate) db: Option<Location>,

    /// File that holds the token of the libSQL server
    #[arg(long, env = "PLATEN_DB_TOKEN_FILE", value_name = "FILE")]
    pub(crate) db_token_file: Option<PathBuf>,
}

impl DatabaseArgs {
    pub(crate) fn location(&self) -> Location {
        self.db.clone().unwrap_or_else(|| Location::in_data(&self.data))
    }

    pub(crate) async fn open(&self, purpose: Purpose) -> Result<Database> {
        let location = self.location();
        let token = match &location {
            Location::Server(_) => platen_program::secret("PLATEN_DB_TOKEN", self.db_token_file.as_deref())?,
            Location::File(_) => None,
        };
        match Database::open(&location, token, purpose).await {
            Err(DbError::Missing(path)) => {
                anyhow::bail!(
                    "there is no database at {path}: run `platen migrate` (with the same --db or --data)"
                )
            }
            other => other.with_context(|| format!("the database {location} cannot be used")),
        }
    }

    /// Opens a database that has the schema of this binary.
    async fn admin(&self) -> Result<Admin> {
        let database = self.open(Purpose::Operate).await?;
        crate::migrate::check(&database)
            .await
            .with_context(|| format!("the database {} cannot be used", self.location()))?;
        Ok(Admin::new(database))
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
        write_out(format!("{line}\n").as_bytes())
    }
}

fn write_out(bytes: &[u8]) -> Result<()> {
    match io::stdout().write_all(bytes) {
        // A reader that has read enough, such as `head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The arguments of a list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Account whose entries are listed: its name or id
    #[arg(long, value_name = "NAME|ID")]
    account: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

impl ListArgs {
    /// The database, and the id of the account whose rows are listed if not all are.
    async fn open(&self) -> Result<(Admin, Option<AccountId>)> {
        let admin = self.common.open().await?;
        let account = match &self.account {
            Some(account) => Some(admin.account(account).await?.id),
            None => None,
        };
        Ok((admin, account))
    }
}

impl CommonArgs {
    async fn open(&self) -> Result<Admin> {
        self.database.admin().await
    }
}

/// A number; `None` is no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(Option<u32>);

impl Limit {
    /// A number from `min`, or the word for no limit.
    fn parse(text: &str, min: u32, unlimited: &str) -> Result<Self, String> {
        if text == unlimited {
            return Ok(Self(None));
        }
        let number = text.parse().ok().filter(|number| *number >= min);
        let number =
            number.ok_or_else(|| format!("a whole number from {min} to {}, or {unlimited:?}", u32::MAX))?;
        Ok(Self(Some(number)))
    }
}

/// The exit status for what is not valid in arguments, variables and the files that they name.
pub(crate) const INVALID: u8 = 2;

/// An error with the exit status of the program, where that is not 1.
#[derive(Debug, thiserror::Error)]
#[error("{error:#}")]
pub(crate) struct Failure {
    status: u8,
    error: Error,
}

impl Failure {
    pub(crate) fn invalid(error: impl Into<Error>) -> Self {
        Self { status: INVALID, error: error.into() }
    }
}

/// The exit status of the program after an error.
pub(crate) fn exit_status(error: &Error) -> u8 {
    if error.chain().any(<dyn std::error::Error>::is::<InvalidUpstream>) {
        return INVALID;
    }
    error.downcast_ref::<Failure>().map_or(1, |failure| failure.status)
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
