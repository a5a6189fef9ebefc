//! Creates the tables of `schema/`, and checks whether a database has them.
//!
//! Invariant: all tables and the version are committed in one transaction, and of two processes that migrate at once, one
//! creates them.

use anyhow::{Result, bail, ensure};

use crate::db::{Database, Value};

/// The version of the schema. A change of what has been released needs a new one, and the statements that lead to it.
pub(crate) const VERSION: i64 = 1;

const SCHEMA: &str = concat!(
    include_str!("../../schema/accounts.sql"),
    include_str!("../../schema/api_keys.sql"),
    include_str!("../../schema/templates.sql"),
    include_str!("../../schema/template_files.sql"),
    include_str!("../../schema/usage.sql"),
    include_str!("../../schema/claims_ahead.sql"),
    include_str!("../../schema/attempts.sql"),
    include_str!("../../schema/links.sql"),
    include_str!("../../schema/users.sql"),
    include_str!("../../schema/invites.sql"),
    include_str!("../../schema/audit.sql"),
    include_str!("../../schema/retention.sql"),
);

/// Creates the tables if there are none. Whether it did.
pub(crate) async fn migrate(database: &Database) -> Result<bool> {
    if is_current(database).await? {
        return Ok(false);
    }
    let script = format!(
        "BEGIN IMMEDIATE;\n{SCHEMA}\n\
         CREATE TABLE schema_version (version INTEGER NOT NULL, created_at INTEGER NOT NULL) STRICT;\n\
         INSERT INTO schema_version VALUES ({VERSION}, unixepoch());\n\
         COMMIT;"
    );
    match database.run_script(&script).await {
        Ok(()) => Ok(true),
        // Another process has created them meanwhile.
        Err(_) if is_current(database).await? => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Fails unless the database has the version of this binary.
pub(crate) async fn check(database: &Database) -> Result<()> {
    ensure!(
        is_current(database).await?,
        "the database is not up to date: run `platen migrate` (with the same --db or --data)"
    );
    Ok(())
}

/// An error for a database that a newer platen has migrated.
async fn is_current(database: &Database) -> Result<bool> {
    match version(database).await? {
        Some(VERSION) => Ok(true),
        None => Ok(false),
        Some(found) => {
            bail!(
                "the database has schema version {found}, and this platen has {VERSION}: use a newer platen"
            )
        }
    }
}

/// The version that a database has; `None` without tables.
pub(crate) async fn version(database: &Database) -> Result<Option<i64>> {
    let tables = "SELECT name FROM sqlite_schema WHERE name IN ('schema_version', 'accounts')";
    let tables = database.query_when_available(tables).await?;
    if !tables.contains(&vec!["schema_version".into()]) {
        ensure!(
            tables.is_empty(),
            "it has tables that no released platen has made: name another database (--db or --data)"
        );
        return Ok(None);
    }
    let rows = database.query("SELECT version FROM schema_version", Vec::new()).await?;
    Ok(match rows.first().and_then(|row| row.first()) {
        Some(Value::Integer(version)) => Some(*version),
        _ => None,
    })
}

/// The triggers of the schema, on a file.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{Location, Purpose};

    async fn migrated() -> (tempfile::TempDir, Database) {
        let directory = tempfile::tempdir().unwrap();
        let database =
            Database::open(&Location::in_data(directory.path()), None, Purpose::Migrate).await.unwrap();
        migrate(&database).await.unwrap();
        for sql in [
            "INSERT INTO accounts (id, name, created_at) VALUES ('a', 'a', 0)",
            "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at) VALUES ('k', 'a', 'k', 'p', printf('%064d', 0), 0)",
        ] {
            database.query(sql, vec![]).await.unwrap();
        }
        (directory, database)
    }

    async fn attempt(database: &Database, at: i64, status: i64, counted: i64) {
        let sql = "INSERT INTO attempts (attempt_id, account_id, key_id, request_id, endpoint, format, status, counted, ms, at) \
            VALUES (random(), 'a', 'k', 'r', 'render', 'png', ?2, ?3, 1, ?1)";
        database.query(sql, vec![at.into(), status.into(), counted.into()]).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_attempt_sets_the_last_use_counts_its_day_and_deletes_old_attempts() {
        const DAY: i64 = 86_400;
        let (_directory, database) = migrated().await;
        attempt(&database, 10, 200, 1).await;
        attempt(&database, DAY + 5, 422, 1).await;
        attempt(&database, DAY + 6, 503, 0).await;
        let days =
            database.query("SELECT day, attempts, failures FROM usage_days ORDER BY day", vec![]).await;
        let day =
            |day: &str, attempts: i64, failures: i64| vec![day.into(), attempts.into(), failures.into()];
        assert_eq!(days.unwrap(), [day("1970-01-01", 1, 0), day("1970-01-02", 1, 1)]);
        let used = database.query("SELECT last_used_at FROM api_keys", vec![]).await.unwrap();
        assert_eq!(used, [vec![Value::from(DAY + 6)]]);
        let count =
            async || database.query("SELECT count(*) FROM attempts", vec![]).await.unwrap()[0][0].clone();
        // Attempts of the last 30 days are kept, to the second.
        attempt(&database, 10 + 30 * DAY, 200, 1).await;
        assert_eq!(count().await, Value::Integer(4));
        attempt(&database, 11 + 30 * DAY, 200, 1).await;
        assert_eq!(count().await, Value::Integer(4));
    }
}
