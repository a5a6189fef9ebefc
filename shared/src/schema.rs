//! The database schema as numbered migrations.
//!
//! Invariant: a step is one statement, because a libSQL client ignores what follows the first one.
//! A released step is never changed. `schema_migrations` records a step in the transaction that
//! applies it.
//!
//! Times are whole seconds since 1970 (UTC); a month is `YYYY-MM` (UTC).

#[macro_use]
mod last_change;

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Position in the order, from 1, without gaps.
    pub number: u32,
    /// Short description, printed by `platen migrate`.
    pub name: &'static str,
    /// One SQL statement.
    pub sql: &'static str,
}

/// Creates the table that records applied steps, if it does not exist.
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
        // `packed_html` is the output of `template::pack`. `placeholders` is a JSON array of the names
        // in the markup: the claim refuses a missing variable before it records the attempt.
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
        // A trigger, so that no version is lost under concurrent saves by several programs.
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
        // `counted` is 0 for a refunded attempt. `bytes` is NULL if no file was sent.
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
        // A trigger, so that the edge needs one statement. Attempts are deleted after 30 days, at most
        // 100 for each new one.
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
        // `account_id` is NULL for an operator who works in no account.
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
        // `hash` is the hash of the cookie's token; pages show `id`.
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
        // One row for each subject: the hash of an e-mail address or of a network address.
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
    Migration {
        number: 27,
        name: "invites: only the newest open one of an address",
        sql: "DELETE FROM invites WHERE used_at IS NULL AND rowid NOT IN \
            (SELECT max(rowid) FROM invites WHERE used_at IS NULL GROUP BY email)",
    },
    Migration {
        number: 28,
        name: "invites: at most one open one for an address",
        sql: "CREATE UNIQUE INDEX invites_open ON invites (email) WHERE used_at IS NULL",
    },
    add_last_change!(29, "accounts"),
    add_last_change!(30, "api_keys"),
    add_last_change!(31, "templates"),
    add_last_change!(32, "invites"),
    add_last_change!(33, "users"),
    audit_trigger!(34, "accounts", "created", "INSERT", "name",),
    audit_trigger!(35, "accounts", "changed", "UPDATE OF last_change", "name",),
    audit_trigger!(36, "api_keys", "created", "INSERT", "name",),
    audit_trigger!(
        37,
        "api_keys",
        "changed",
        "UPDATE OF last_change",
        "name",
        "DELETE FROM api_keys WHERE id = new.id AND json_extract(new.last_change, '$.deletes')"
    ),
    audit_trigger!(38, "templates", "created", "INSERT", "name",),
    audit_trigger!(
        39,
        "templates",
        "changed",
        "UPDATE OF last_change",
        "name",
        "DELETE FROM templates WHERE id = new.id AND json_extract(new.last_change, '$.deletes')"
    ),
    audit_trigger!(40, "invites", "created", "INSERT", "email",),
    audit_trigger!(41, "invites", "changed", "UPDATE OF last_change", "email",),
    // `invite` is the hash of the invite that the change uses. `ends_sessions` ends the user's sessions,
    // except for the one with the id `kept_session`.
    audit_trigger!(
        42,
        "users",
        "created",
        "INSERT",
        "email",
        "UPDATE invites SET used_at = json_extract(new.last_change, '$.at') \
            WHERE hash = json_extract(new.last_change, '$.invite')"
    ),
    audit_trigger!(
        43,
        "users",
        "changed",
        "UPDATE OF last_change",
        "email",
        "UPDATE invites SET used_at = json_extract(new.last_change, '$.at') \
            WHERE hash = json_extract(new.last_change, '$.invite')",
        "DELETE FROM sessions WHERE user_id = new.id AND json_extract(new.last_change, '$.ends_sessions') \
            AND id IS NOT json_extract(new.last_change, '$.kept_session')",
        "DELETE FROM users WHERE id = new.id AND json_extract(new.last_change, '$.deletes')"
    ),
    Migration {
        number: 44,
        name: "users: sessions and open invites are deleted with their user",
        sql: "CREATE TRIGGER users_deleted AFTER DELETE ON users \
            BEGIN \
            DELETE FROM sessions WHERE user_id = old.id; \
            DELETE FROM invites WHERE email = old.email AND used_at IS NULL; \
            END",
    },
];

#[cfg(test)]
mod tests;
