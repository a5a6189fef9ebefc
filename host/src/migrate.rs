//! Creates the tables of `schema/`, and checks whether a database has all of them.
//!
//! Invariant: all missing steps and their records are committed in one transaction, and of two processes that migrate at
//! once, one applies them.

use std::cmp::Ordering;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use crate::db::{Connection, Database, DbError, Value};

/// A file of `schema/`: tables with their indexes and triggers, or a later change.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Step {
    /// Position in the order, from 1, without gaps.
    pub(crate) number: usize,
    pub(crate) name: &'static str,
    #[serde(skip)]
    sql: &'static str,
}

macro_rules! steps {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../schema/", $name, ".sql")))),*]
    };
}

/// Name and statements of each step. What has been released is never changed: a change of the schema is a new step.
const STEPS: &[(&str, &str)] = &steps![
    "accounts",
    "api_keys",
    "templates",
    "usage",
    "attempts",
    "users",
    "invites",
    "audit",
    "retention",
];

const RECORD_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (\
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";

/// Applies every missing step and returns them.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<Step>> {
    let connection = database.connect();
    // In the common case no write lock is needed.
    let newest = newest_or_none(&connection).await?;
    check_not_newer(newest)?;
    if newest == known() {
        return Ok(Vec::new());
    }
    connection.query_when_available("BEGIN IMMEDIATE").await?;
    match apply_missing(&connection).await {
        Ok(applied) => {
            connection.query("COMMIT", Vec::new()).await?;
            Ok(applied)
        }
        Err(error) => {
            // The first error is reported; a server may have rolled back already.
            let _ = connection.query("ROLLBACK", Vec::new()).await;
            Err(error)
        }
    }
}

async fn apply_missing(connection: &Connection) -> Result<Vec<Step>> {
    connection.query(RECORD_TABLE, Vec::new()).await?;
    // Another process may have applied some meanwhile.
    let newest = newest(connection).await?;
    let mut applied = Vec::new();
    for (index, &(name, sql)) in STEPS.iter().enumerate() {
        let step = Step { number: index + 1, name, sql };
        if newest >= step.number {
            continue;
        }
        let record = format!(
            "INSERT INTO schema_migrations (number, name, applied_at) VALUES ({}, '{name}', unixepoch());",
            step.number
        );
        let script = format!("{}\n{record}", step.sql);
        connection
            .run_script(&script)
            .await
            .with_context(|| format!("step {} ({name}) failed", step.number))?;
        applied.push(step);
    }
    Ok(applied)
}

/// The steps of a database, compared with those of this binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// It has exactly the steps of this binary, of which this is the last one.
    Current(usize),
    /// It lacks steps.
    Older { found: usize, known: usize },
    /// It was migrated by a newer platen.
    Newer { found: usize, known: usize },
}

/// Compares the steps of a database with those of this binary.
pub(crate) async fn state(database: &Database) -> Result<SchemaState, DbError> {
    let (found, known) = (newest_or_none(&database.connect()).await?, known());
    Ok(match found.cmp(&known) {
        Ordering::Less => SchemaState::Older { found, known },
        Ordering::Equal => SchemaState::Current(known),
        Ordering::Greater => SchemaState::Newer { found, known },
    })
}

/// Fails unless the database has exactly the steps of this binary.
pub(crate) async fn check(database: &Database) -> Result<()> {
    let connection = database.connect();
    let newest = newest_or_none(&connection).await?;
    check_not_newer(newest)?;
    ensure!(
        newest == known(),
        "the database is not up to date: run `platen migrate` (with the same --db or --data)"
    );
    Ok(())
}

fn check_not_newer(found: usize) -> Result<()> {
    let known = known();
    ensure!(
        found <= known,
        "the database has schema step {found}, and this platen has steps up to {known}: use a newer platen"
    );
    Ok(())
}

fn known() -> usize {
    STEPS.len()
}

/// The last step that a database has, 0 if it has none.
pub(crate) async fn newest_step(database: &Database) -> Result<usize, DbError> {
    newest_or_none(&database.connect()).await
}

/// Like [`newest`], and 0 for a database without steps.
async fn newest_or_none(connection: &Connection) -> Result<usize, DbError> {
    let tables = "SELECT name FROM sqlite_schema WHERE name = 'schema_migrations'";
    if connection.query_when_available(tables).await?.is_empty() { Ok(0) } else { newest(connection).await }
}

async fn newest(connection: &Connection) -> Result<usize, DbError> {
    let rows = connection.query("SELECT max(number) FROM schema_migrations", Vec::new()).await?;
    match rows.first().and_then(|row| row.first()) {
        Some(Value::Integer(number)) => Ok(usize::try_from(*number).unwrap_or_default()),
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests;
