//! The database schema as numbered migrations.
//!
//! Invariant: a step is one statement, is never changed once released, and is recorded in
//! `schema_migrations` in the same transaction that applies it. One statement a step, because a
//! libSQL client drops the rest of a longer string. Left to others: running them (host).
//!
//! Times are whole seconds since 1970 (UTC); a month is `YYYY-MM` (UTC).

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its place in the order, from 1, without gaps.
    pub number: u32,
    /// What it does, for the operator's eyes.
    pub name: &'static str,
    /// One SQL statement.
    pub sql: &'static str,
}

/// Creates the table that records applied steps; harmless when it exists.
pub const RECORD_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (\
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";

/// Every step, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "accounts",
        sql: "CREATE TABLE accounts (\
            id TEXT PRIMARY KEY, \
            name TEXT NOT NULL UNIQUE, \
            quota INTEGER CHECK (quota >= 0), \
            created_at INTEGER NOT NULL, \
            disabled_at INTEGER) STRICT",
    },
    Migration {
        number: 2,
        name: "api keys",
        sql: "CREATE TABLE api_keys (\
            id TEXT PRIMARY KEY, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            name TEXT NOT NULL, \
            prefix TEXT NOT NULL, \
            hash TEXT NOT NULL UNIQUE, \
            created_at INTEGER NOT NULL, \
            disabled_at INTEGER) STRICT",
    },
    Migration {
        number: 3,
        name: "api keys by account",
        sql: "CREATE INDEX api_keys_by_account ON api_keys (account_id)",
    },
    Migration {
        number: 4,
        name: "templates",
        // `packed_html` is what `template::pack` makes. `placeholders` is a JSON array of the names
        // the markup uses, so that the claim can see a missing variable in the database instead
        // of after the attempt was recorded.
        sql: "CREATE TABLE templates (\
            id TEXT PRIMARY KEY, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            name TEXT NOT NULL, \
            packed_html BLOB NOT NULL, \
            placeholders TEXT NOT NULL, \
            created_at INTEGER NOT NULL, \
            updated_at INTEGER NOT NULL) STRICT",
    },
    Migration {
        number: 5,
        name: "templates by account",
        sql: "CREATE INDEX templates_by_account ON templates (account_id)",
    },
    Migration {
        number: 6,
        name: "usage by account and month",
        sql: "CREATE TABLE usage (\
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            month TEXT NOT NULL, \
            attempts INTEGER NOT NULL CHECK (attempts >= 0), \
            PRIMARY KEY (account_id, month)) STRICT, WITHOUT ROWID",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps_and_hold_one_statement_each() {
        for (index, step) in MIGRATIONS.iter().enumerate() {
            assert_eq!(step.number as usize, index + 1, "{}", step.name);
            assert!(!step.sql.contains(';'), "{}", step.name);
        }
    }
}
