//! Applies the migrations of [`platen_shared::schema`], and checks whether a database has all of them.
//!
//! Invariant: a step and its record are committed in one transaction, and of two processes that migrate
//! at once, one applies each step.

use std::{
    cmp::Ordering,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use platen_shared::schema::{MIGRATIONS, Migration, RECORD_TABLE};

use crate::db::{Connection, Database, DbError, Value};

/// Applies every missing step and returns them.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static Migration>> {
    let connection = database.connect();
    patiently(&connection, RECORD_TABLE).await?;
    let mut applied = Vec::new();
    for step in MIGRATIONS {
        // In the common case the step is recorded, and no write lock is needed.
        if newest(&connection).await? >= i64::from(step.number) {
            continue;
        }
        // From here on no other process writes. `apply` checks again whether the step is needed.
        patiently(&connection, "BEGIN IMMEDIATE").await?;
        match apply(&connection, step).await {
            Ok(done) => {
                connection.query("COMMIT", Vec::new()).await?;
                applied.extend(done.then_some(step));
            }
            Err(source) => {
                // The first error is reported; a server may have rolled back already.
                let _ = connection.query("ROLLBACK", Vec::new()).await;
                return Err(source).with_context(|| format!("step {} ({}) failed", step.number, step.name));
            }
        }
    }
    check_not_newer(newest(&connection).await?)?;
    Ok(applied)
}

/// Runs a statement that waits for the write lock. SQLite does not give the lock to those who wait in turn, so a process can
/// wait for too long while others apply steps; it goes on as long as they do.
async fn patiently(connection: &Connection, sql: &str) -> Result<(), DbError> {
    let mut reached = newest_or_none(connection).await?;
    loop {
        match connection.query(sql, Vec::new()).await {
            Err(error) if error.is_busy() => {
                let newest = newest_or_none(connection).await?;
                if newest <= reached {
                    return Err(error);
                }
                reached = newest;
            }
            other => return other.map(drop),
        }
    }
}

/// The steps of a database, compared with those of this binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// It has exactly the steps of this binary, of which this is the last one.
    Current(u32),
    /// It lacks steps.
    Older { found: i64, known: u32 },
    /// It was migrated by a newer platen.
    Newer { found: i64, known: u32 },
}

/// Compares the steps of a database with those of this binary.
pub(crate) async fn state(database: &Database) -> Result<SchemaState, DbError> {
    let (found, known) = (newest_or_none(&database.connect()).await?, known());
    Ok(match found.cmp(&i64::from(known)) {
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
        newest >= i64::from(known()),
        "the database is not up to date: run `platen migrate` (with the same --db or --data)"
    );
    Ok(())
}

fn check_not_newer(found: i64) -> Result<()> {
    let known = known();
    ensure!(
        found <= i64::from(known),
        "the database has schema step {found}, and this platen has steps up to {known}: use a newer platen"
    );
    Ok(())
}

fn known() -> u32 {
    MIGRATIONS.last().map_or(0, |step| step.number)
}

/// The last step that a database has, 0 if it has none.
pub(crate) async fn newest_step(database: &Database) -> Result<i64, DbError> {
    newest_or_none(&database.connect()).await
}

/// Like [`newest`], and 0 for a database without steps.
async fn newest_or_none(connection: &Connection) -> Result<i64, DbError> {
    match newest(connection).await {
        Err(DbError::Statement { message, .. }) if message.contains("no such table") => Ok(0),
        other => other,
    }
}

async fn newest(connection: &Connection) -> Result<i64, DbError> {
    let rows = connection.query("SELECT max(number) FROM schema_migrations", Vec::new()).await?;
    match rows.first().and_then(|row| row.first()) {
        Some(Value::Integer(number)) => Ok(*number),
        _ => Ok(0),
    }
}

async fn apply(connection: &Connection, step: &Migration) -> Result<bool, DbError> {
    if newest(connection).await? >= i64::from(step.number) {
        return Ok(false);
    }
    connection.query(step.sql, Vec::new()).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    connection
        .query(
            "INSERT INTO schema_migrations (number, name, applied_at) VALUES (?1, ?2, ?3)",
            vec![
                i64::from(step.number).into(),
                step.name.into(),
                i64::try_from(now).unwrap_or(i64::MAX).into(),
            ],
        )
        .await?;
    Ok(true)
}

#[cfg(test)]
mod tests;
