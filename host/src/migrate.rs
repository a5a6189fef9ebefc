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

/// The triggers of the schema, on a file.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{Location, Purpose};

    async fn migrated() -> (tempfile::TempDir, Connection) {
        let directory = tempfile::tempdir().unwrap();
        let database =
            Database::open(&Location::in_data(directory.path()), None, Purpose::Migrate).await.unwrap();
        migrate(&database).await.unwrap();
        let connection = database.connect();
        for sql in [
            "INSERT INTO accounts (id, name, created_at) VALUES ('a', 'a', 0)",
            "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at) VALUES ('k', 'a', 'k', 'p', 'h', 0)",
        ] {
            connection.query(sql, vec![]).await.unwrap();
        }
        (directory, connection)
    }

    async fn attempt(connection: &Connection, at: i64, status: i64, counted: i64) {
        let sql = "INSERT INTO attempts (attempt_id, account_id, key_id, request_id, endpoint, format, status, counted, ms, at) \
            VALUES (random(), 'a', 'k', 'r', 'render', 'png', ?2, ?3, 1, ?1)";
        connection.query(sql, vec![at.into(), status.into(), counted.into()]).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_attempt_sets_the_last_use_counts_its_day_and_deletes_old_attempts() {
        const DAY: i64 = 86_400;
        let (_directory, connection) = migrated().await;
        attempt(&connection, 10, 200, 1).await;
        attempt(&connection, DAY + 5, 422, 1).await;
        attempt(&connection, DAY + 6, 503, 0).await;
        let days =
            connection.query("SELECT day, attempts, failures FROM usage_days ORDER BY day", vec![]).await;
        let day =
            |day: &str, attempts: i64, failures: i64| vec![day.into(), attempts.into(), failures.into()];
        assert_eq!(days.unwrap(), [day("1970-01-01", 1, 0), day("1970-01-02", 1, 1)]);
        let used = connection.query("SELECT last_used_at FROM api_keys", vec![]).await.unwrap();
        assert_eq!(used, [vec![Value::from(DAY + 6)]]);
        let count =
            async || connection.query("SELECT count(*) FROM attempts", vec![]).await.unwrap()[0][0].clone();
        // Attempts of the last 30 days are kept, to the second.
        attempt(&connection, 10 + 30 * DAY, 200, 1).await;
        assert_eq!(count().await, Value::Integer(4));
        attempt(&connection, 11 + 30 * DAY, 200, 1).await;
        assert_eq!(count().await, Value::Integer(4));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_row_refunds_its_attempt_once() {
        let (_directory, connection) = migrated().await;
        let usage =
            async || connection.query("SELECT attempts FROM usage", vec![]).await.unwrap()[0][0].clone();
        let refund = async |id: i64, month: &str| {
            let sql = "INSERT INTO attempts \
                (attempt_id, account_id, request_id, endpoint, format, status, counted, ms, at, refunded_month) \
                VALUES (?1, 'a', 'r', 'render', 'png', 503, 0, 1, 1, ?2) ON CONFLICT (at, attempt_id) DO NOTHING";
            connection.query(sql, vec![id.into(), month.into()]).await.unwrap();
        };
        connection
            .query("INSERT INTO usage (account_id, month, attempts) VALUES ('a', '2026-11', 2)", vec![])
            .await
            .unwrap();
        attempt(&connection, 1, 503, 0).await;
        assert_eq!(usage().await, Value::Integer(2));
        refund(101, "2026-10").await;
        assert_eq!(usage().await, Value::Integer(2));
        for (id, left) in [(7, 1), (7, 1), (8, 0), (8, 0), (9, 0)] {
            refund(id, "2026-11").await;
            assert_eq!(usage().await, Value::Integer(left));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_save_keeps_the_replaced_version_and_nothing_else_does() {
        let (_directory, connection) = migrated().await;
        let versions = async || {
            let sql = "SELECT number, name, saved_at FROM template_versions ORDER BY number";
            connection.query(sql, vec![]).await.unwrap()
        };
        for sql in [
            "INSERT INTO templates (id, account_id, name, packed_html, placeholders, created_at, updated_at) \
                VALUES ('t', 'a', 'first', x'00', '[]', 1, 1)",
            "UPDATE templates SET samples = '{\"x\":\"1\"}', name = 'first', packed_html = x'00', updated_at = 2",
            "UPDATE templates SET name = 'second', packed_html = x'01', updated_at = 3",
            "UPDATE templates SET name = 'third', packed_html = x'01', updated_at = 4",
        ] {
            connection.query(sql, vec![]).await.unwrap();
        }
        let version = |number: i64, name: &str, saved: i64| vec![number.into(), name.into(), saved.into()];
        assert_eq!(versions().await, [version(1, "first", 2), version(2, "second", 3)]);
        connection.query("DELETE FROM templates", vec![]).await.unwrap();
        assert!(versions().await.is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn attempts_are_counted_by_key_and_template() {
        let (_directory, connection) = migrated().await;
        let sql = "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, is_temporary) \
            VALUES ('r', 'a', 'r', 'p', 'i', 0, 1)";
        connection.query(sql, vec![]).await.unwrap();
        for (key, template, status, counted) in [
            ("k", "NULL", 200, 1),
            ("k", "'t'", 422, 1),
            ("k", "'t'", 200, 1),
            ("r", "'t'", 200, 1),
            ("k", "NULL", 503, 0),
        ] {
            let sql = format!(
                "INSERT INTO attempts \
                 (attempt_id, account_id, key_id, template_id, request_id, endpoint, format, status, counted, ms, at) \
                 VALUES (random(), 'a', '{key}', {template}, 'r', 'render', 'png', {status}, {counted}, 1, 5)"
            );
            connection.query(&sql, vec![]).await.unwrap();
        }
        let part = |key: &str, template: &str, attempts: i64, failures: i64| {
            vec![key.into(), template.into(), attempts.into(), failures.into()]
        };
        let parts = async || {
            let sql = "SELECT key_id, template_id, attempts, failures FROM usage_parts ORDER BY 1, 2";
            connection.query(sql, vec![]).await.unwrap()
        };
        assert_eq!(parts().await, [part("", "t", 1, 0), part("k", "", 1, 0), part("k", "t", 2, 1)]);
        // The days before the last 30 are deleted.
        attempt(&connection, 40 * 86_400, 200, 1).await;
        assert_eq!(parts().await, [part("k", "", 1, 0)]);
    }
}
