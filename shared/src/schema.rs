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
    Migration {
        number: 7,
        name: "api keys: last use",
        sql: "ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER",
    },
    Migration {
        number: 8,
        name: "api keys: expiry",
        sql: "ALTER TABLE api_keys ADD COLUMN expires_at INTEGER",
    },
    Migration {
        number: 9,
        name: "api keys: one template only",
        sql: "ALTER TABLE api_keys ADD COLUMN template_id TEXT",
    },
    Migration {
        number: 10,
        name: "templates: sample values",
        // A JSON object of texts by placeholder.
        sql: "ALTER TABLE templates ADD COLUMN samples TEXT NOT NULL DEFAULT '{}'",
    },
    Migration {
        number: 11,
        name: "template versions",
        sql: "CREATE TABLE template_versions (\
            template_id TEXT NOT NULL, \
            number INTEGER NOT NULL, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            name TEXT NOT NULL, \
            packed_html BLOB NOT NULL, \
            placeholders TEXT NOT NULL, \
            saved_at INTEGER NOT NULL, \
            PRIMARY KEY (template_id, number)) STRICT",
    },
    Migration {
        number: 12,
        name: "template versions: kept by every save",
        // By the database, so that whoever saves, and however many at once, no version is lost.
        sql: "CREATE TRIGGER template_versions_kept AFTER UPDATE OF name, packed_html ON templates \
            WHEN old.packed_html IS NOT new.packed_html OR old.name IS NOT new.name \
            BEGIN \
            INSERT INTO template_versions \
            (template_id, number, account_id, name, packed_html, placeholders, saved_at) \
            SELECT old.id, 1 + coalesce((SELECT max(number) FROM template_versions \
            WHERE template_id = old.id), 0), old.account_id, old.name, old.packed_html, \
            old.placeholders, old.updated_at; \
            END",
    },
    Migration {
        number: 13,
        name: "template versions: deleted with their template",
        sql: "CREATE TRIGGER template_versions_deleted AFTER DELETE ON templates \
            BEGIN \
            DELETE FROM template_versions WHERE template_id = old.id; \
            END",
    },
    Migration {
        number: 14,
        name: "attempts",
        // `counted` is 0 for an attempt that was given back. `bytes` is NULL where there is no file.
        sql: "CREATE TABLE attempts (\
            id INTEGER PRIMARY KEY, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            key_id TEXT, \
            key_name TEXT, \
            endpoint TEXT NOT NULL, \
            format TEXT NOT NULL, \
            status INTEGER NOT NULL, \
            counted INTEGER NOT NULL, \
            ms INTEGER NOT NULL, \
            bytes INTEGER, \
            at INTEGER NOT NULL) STRICT",
    },
    Migration {
        number: 15,
        name: "attempts by account",
        sql: "CREATE INDEX attempts_by_account ON attempts (account_id, at)",
    },
    Migration {
        number: 16,
        name: "attempts that failed by account",
        sql: "CREATE INDEX attempts_failed ON attempts (account_id, at) WHERE status >= 400",
    },
    Migration { number: 17, name: "attempts by time", sql: "CREATE INDEX attempts_by_time ON attempts (at)" },
    Migration {
        number: 18,
        name: "usage by account and day",
        sql: "CREATE TABLE usage_days (\
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            day TEXT NOT NULL, \
            attempts INTEGER NOT NULL, \
            failures INTEGER NOT NULL, \
            PRIMARY KEY (account_id, day)) STRICT, WITHOUT ROWID",
    },
    Migration {
        number: 19,
        name: "attempts: what follows from one",
        // One statement of the edge does it all. Pruned after 30 days, a bounded number at a time.
        sql: "CREATE TRIGGER attempts_logged AFTER INSERT ON attempts \
            BEGIN \
            UPDATE api_keys SET last_used_at = new.at WHERE id = new.key_id; \
            INSERT INTO usage_days (account_id, day, attempts, failures) \
            VALUES (new.account_id, date(new.at, 'unixepoch'), new.counted, new.counted * (new.status >= 400)) \
            ON CONFLICT (account_id, day) DO UPDATE SET attempts = attempts + excluded.attempts, \
            failures = failures + excluded.failures; \
            DELETE FROM attempts WHERE id IN \
            (SELECT id FROM attempts WHERE at < new.at - 2592000 ORDER BY at LIMIT 100); \
            END",
    },
    Migration {
        number: 20,
        name: "users",
        // An operator need not belong to an account.
        sql: "CREATE TABLE users (\
            id TEXT PRIMARY KEY, \
            email TEXT NOT NULL UNIQUE, \
            account_id TEXT REFERENCES accounts(id) ON DELETE SET NULL, \
            operator INTEGER NOT NULL, \
            password TEXT NOT NULL, \
            created_at INTEGER NOT NULL, \
            disabled_at INTEGER) STRICT",
    },
    Migration {
        number: 21,
        name: "users by account",
        sql: "CREATE INDEX users_by_account ON users (account_id)",
    },
    Migration {
        number: 22,
        name: "sessions",
        // `hash` is of the cookie's token, `id` is what a page may show.
        sql: "CREATE TABLE sessions (\
            hash TEXT PRIMARY KEY, \
            id TEXT NOT NULL UNIQUE, \
            user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE, \
            created_at INTEGER NOT NULL, \
            seen_at INTEGER NOT NULL, \
            address TEXT NOT NULL, \
            agent TEXT NOT NULL) STRICT",
    },
    Migration {
        number: 23,
        name: "sessions by user",
        sql: "CREATE INDEX sessions_by_user ON sessions (user_id)",
    },
    Migration {
        number: 24,
        name: "invites",
        sql: "CREATE TABLE invites (\
            hash TEXT PRIMARY KEY, \
            email TEXT NOT NULL, \
            account_id TEXT REFERENCES accounts(id) ON DELETE CASCADE, \
            operator INTEGER NOT NULL, \
            created_at INTEGER NOT NULL, \
            expires_at INTEGER NOT NULL, \
            used_at INTEGER) STRICT",
    },
    Migration {
        number: 25,
        name: "sign-in tries",
        // One row a subject: an e-mail address or a network address, hashed.
        sql: "CREATE TABLE sign_in_tries (\
            subject TEXT PRIMARY KEY, \
            began_at INTEGER NOT NULL, \
            tries INTEGER NOT NULL) STRICT",
    },
    Migration {
        number: 26,
        name: "audit log",
        sql: "CREATE TABLE audit (\
            id INTEGER PRIMARY KEY, \
            at INTEGER NOT NULL, \
            actor TEXT NOT NULL, \
            account_id TEXT, \
            action TEXT NOT NULL, \
            subject TEXT NOT NULL) STRICT",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps_and_hold_one_statement_each() {
        for (index, step) in MIGRATIONS.iter().enumerate() {
            assert_eq!(step.number as usize, index + 1, "{}", step.name);
            let outside_triggers = step.sql.split(" BEGIN ").next().unwrap();
            assert!(!outside_triggers.contains(';'), "{}", step.name);
            assert_eq!(step.sql.contains(';'), step.sql.ends_with("; END"), "{}", step.name);
        }
    }
}
