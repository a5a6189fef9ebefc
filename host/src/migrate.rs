//! Brings a database's schema up to date, and tells when it is not.
//!
//! Invariant: a step and its record are committed together or not at all, and of two processes
//! that migrate at once the second finds the first one's work done. Left to others: the steps
//! ([`platen_shared::schema`]).

use std::time::{SystemTime, UNIX_EPOCH};

use platen_shared::schema::{MIGRATIONS, Migration, RECORD_TABLE};

use crate::db::{Connection, Database, DbError, Value};

/// Why a database is not, or cannot be made, the one this binary works with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateError {
    /// It has steps this binary does not know.
    #[error("the database has schema step {found}, and this platen knows {known}: use a newer platen")]
    Newer {
        /// Its newest step.
        found: i64,
        /// This binary's newest step.
        known: u32,
    },
    /// Steps are missing.
    #[error("the database is not up to date: run `platen migrate` (with the same --db or --data)")]
    Behind,
    /// A step failed.
    #[error("step {number} ({name}) failed")]
    Step {
        /// The step's number.
        number: u32,
        /// What it does.
        name: &'static str,
        /// Why it failed.
        #[source]
        source: DbError,
    },
    /// The database itself failed.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// Applies every missing step and returns them.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static Migration>, MigrateError> {
    let connection = database.connect();
    connection.query(RECORD_TABLE, Vec::new()).await?;
    let mut applied = Vec::new();
    for step in MIGRATIONS {
        // The common case, without the write lock: nothing to do.
        if newest(&connection).await? >= i64::from(step.number) {
            continue;
        }
        // From here on no other process can begin; whether it was needed is asked again inside.
        connection.query("BEGIN IMMEDIATE", Vec::new()).await?;
        match apply(&connection, step).await {
            Ok(done) => {
                connection.query("COMMIT", Vec::new()).await?;
                applied.extend(done.then_some(step));
            }
            Err(source) => {
                // The first error is the one to tell; a server may have rolled back already.
                let _ = connection.query("ROLLBACK", Vec::new()).await;
                return Err(MigrateError::Step { number: step.number, name: step.name, source });
            }
        }
    }
    check_not_newer(newest(&connection).await?)?;
    Ok(applied)
}

/// Whether the database is exactly as far as this binary.
pub(crate) async fn check(database: &Database) -> Result<(), MigrateError> {
    let connection = database.connect();
    let newest = match newest(&connection).await {
        Err(DbError::Statement { message, .. }) if message.contains("no such table") => 0,
        other => other?,
    };
    check_not_newer(newest)?;
    if newest < i64::from(known()) { Err(MigrateError::Behind) } else { Ok(()) }
}

fn check_not_newer(found: i64) -> Result<(), MigrateError> {
    let known = known();
    if found > i64::from(known) { Err(MigrateError::Newer { found, known }) } else { Ok(()) }
}

fn known() -> u32 {
    MIGRATIONS.last().map_or(0, |step| step.number)
}

async fn newest(connection: &Connection) -> Result<i64, DbError> {
    let rows = connection.query("SELECT max(number) FROM schema_migrations", Vec::new()).await?;
    Ok(rows.first().and_then(|row| row.first()).and_then(Value::as_integer).unwrap_or(0))
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
