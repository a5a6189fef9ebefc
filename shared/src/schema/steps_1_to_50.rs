//! Accounts, keys, templates, usage, users and the audit log.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    step(
        1,
        "accounts",
        "CREATE TABLE accounts (\
            id TEXT PRIMARY KEY, \
            name TEXT NOT NULL UNIQUE, \
            quota INTEGER CHECK (quota >= 0), \
            created_at INTEGER NOT NULL, \
            disabled_at INTEGER) STRICT",
    ),
    step(
        2,
        "api keys",
        "CREATE TABLE api_keys (\
            id TEXT PRIMARY KEY, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            name TEXT NOT NULL, \
            prefix TEXT NOT NULL, \
            hash TEXT NOT NULL UNIQUE, \
            created_at INTEGER NOT NULL, \
            disabled_at INTEGER) STRICT",
    ),
    step(3, "api keys by account", "CREATE INDEX api_keys_by_account ON api_keys (account_id)"),
    step(
        4,
        "templates",
        // `packed_html` is the output of `template::pack`. `placeholders` is a JSON array of the names
        // in the markup: the claim refuses a missing variable before it records the attempt.
        "CREATE TABLE templates (\
            id TEXT PRIMARY KEY, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            name TEXT NOT NULL, \
            packed_html BLOB NOT NULL, \
            placeholders TEXT NOT NULL, \
            created_at INTEGER NOT NULL, \
            updated_at INTEGER NOT NULL) STRICT",
    ),
    step(5, "templates by account", "CREATE INDEX templates_by_account ON templates (account_id)"),
    step(
        6,
        "usage by account and month",
        "CREATE TABLE usage (\
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            month TEXT NOT NULL, \
            attempts INTEGER NOT NULL CHECK (attempts >= 0), \
            PRIMARY KEY (account_id, month)) STRICT, WITHOUT ROWID",
    ),
    step(7, "api keys: last use", "ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER"),
    step(8, "api keys: expiry", "ALTER TABLE api_keys ADD COLUMN expires_at INTEGER"),
    step(9, "api keys: one template only", "ALTER TABLE api_keys ADD COLUMN template_id TEXT"),
    step(
        10,
        "templates: sample values",
        // A JSON object of texts by placeholder.
        "ALTER TABLE templates ADD COLUMN samples TEXT NOT NULL DEFAULT '{}'",
    ),
    step(
        11,
        "template versions",
        "CREATE TABLE template_versions (\
            template_id TEXT NOT NULL, \
            number INTEGER NOT NULL, \
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            name TEXT NOT NULL, \
            packed_html BLOB NOT NULL, \
            placeholders TEXT NOT NULL, \
            saved_at INTEGER NOT NULL, \
            PRIMARY KEY (template_id, number)) STRICT",
    ),
    step(
        12,
        "template versions: kept by every save",
        // A trigger, so that no version is lost under concurrent saves by several programs.
        "CREATE TRIGGER template_versions_kept AFTER UPDATE OF name, packed_html ON templates \
            WHEN old.packed_html IS NOT new.packed_html OR old.name IS NOT new.name \
            BEGIN \
            INSERT INTO template_versions \
            (template_id, number, account_id, name, packed_html, placeholders, saved_at) \
            SELECT old.id, 1 + coalesce((SELECT max(number) FROM template_versions \
            WHERE template_id = old.id), 0), old.account_id, old.name, old.packed_html, \
            old.placeholders, old.updated_at; \
            END",
    ),
    step(
        13,
        "template versions: deleted with their template",
        "CREATE TRIGGER template_versions_deleted AFTER DELETE ON templates \
            BEGIN \
            DELETE FROM template_versions WHERE template_id = old.id; \
            END",
    ),
    step(
        14,
        "attempts",
        // `counted` is 0 for a refunded attempt. `bytes` is NULL if no file was sent.
        "CREATE TABLE attempts (\
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
    ),
    step(15, "attempts by account", "CREATE INDEX attempts_by_account ON attempts (account_id, at)"),
    step(
        16,
        "attempts that failed by account",
        "CREATE INDEX attempts_failed ON attempts (account_id, at) WHERE status >= 400",
    ),
    step(17, "attempts by time", "CREATE INDEX attempts_by_time ON attempts (at)"),
    step(
        18,
        "usage by account and day",
        "CREATE TABLE usage_days (\
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            day TEXT NOT NULL, \
            attempts INTEGER NOT NULL, \
            failures INTEGER NOT NULL, \
            PRIMARY KEY (account_id, day)) STRICT, WITHOUT ROWID",
    ),
    step(
        19,
        "attempts: what follows from one",
        // A trigger, so that the edge needs one statement. Attempts are deleted after 30 days, at most
        // 100 for each new one.
        "CREATE TRIGGER attempts_logged AFTER INSERT ON attempts \
            BEGIN \
            UPDATE api_keys SET last_used_at = new.at WHERE id = new.key_id; \
            INSERT INTO usage_days (account_id, day, attempts, failures) \
            VALUES (new.account_id, date(new.at, 'unixepoch'), new.counted, new.counted * (new.status >= 400)) \
            ON CONFLICT (account_id, day) DO UPDATE SET attempts = attempts + excluded.attempts, \
            failures = failures + excluded.failures; \
            DELETE FROM attempts WHERE id IN \
            (SELECT id FROM attempts WHERE at < new.at - 2592000 ORDER BY at LIMIT 100); \
            END",
    ),
    step(
        20,
        "users",
        // `account_id` is NULL for an operator who works in no account.
        "CREATE TABLE users (\
            id TEXT PRIMARY KEY, \
            email TEXT NOT NULL UNIQUE, \
            account_id TEXT REFERENCES accounts(id) ON DELETE SET NULL, \
            operator INTEGER NOT NULL, \
            password TEXT NOT NULL, \
            created_at INTEGER NOT NULL, \
            disabled_at INTEGER) STRICT",
    ),
    step(21, "users by account", "CREATE INDEX users_by_account ON users (account_id)"),
    step(
        22,
        "sessions",
        // `hash` is the hash of the cookie's token; pages show `id`.
        "CREATE TABLE sessions (\
            hash TEXT PRIMARY KEY, \
            id TEXT NOT NULL UNIQUE, \
            user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE, \
            created_at INTEGER NOT NULL, \
            seen_at INTEGER NOT NULL, \
            address TEXT NOT NULL, \
            agent TEXT NOT NULL) STRICT",
    ),
    step(23, "sessions by user", "CREATE INDEX sessions_by_user ON sessions (user_id)"),
    step(
        24,
        "invites",
        "CREATE TABLE invites (\
            hash TEXT PRIMARY KEY, \
            email TEXT NOT NULL, \
            account_id TEXT REFERENCES accounts(id) ON DELETE CASCADE, \
            operator INTEGER NOT NULL, \
            created_at INTEGER NOT NULL, \
            expires_at INTEGER NOT NULL, \
            used_at INTEGER) STRICT",
    ),
    step(
        25,
        "sign-in tries",
        // One row for each subject: the hash of an e-mail address or of a network address.
        "CREATE TABLE sign_in_tries (\
            subject TEXT PRIMARY KEY, \
            began_at INTEGER NOT NULL, \
            tries INTEGER NOT NULL) STRICT",
    ),
    step(
        26,
        "audit log",
        "CREATE TABLE audit (\
            id INTEGER PRIMARY KEY, \
            at INTEGER NOT NULL, \
            actor TEXT NOT NULL, \
            account_id TEXT, \
            action TEXT NOT NULL, \
            subject TEXT NOT NULL) STRICT",
    ),
    step(
        27,
        "invites: only the newest open one of an address",
        "DELETE FROM invites WHERE used_at IS NULL AND rowid NOT IN \
            (SELECT max(rowid) FROM invites WHERE used_at IS NULL GROUP BY email)",
    ),
    step(
        28,
        "invites: at most one open one for an address",
        "CREATE UNIQUE INDEX invites_open ON invites (email) WHERE used_at IS NULL",
    ),
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
    step(
        44,
        "users: sessions and open invites are deleted with their user",
        "CREATE TRIGGER users_deleted AFTER DELETE ON users \
            BEGIN \
            DELETE FROM sessions WHERE user_id = old.id; \
            DELETE FROM invites WHERE email = old.email AND used_at IS NULL; \
            END",
    ),
    step(
        45,
        "attempts: refunds",
        // The month (`YYYY-MM`) from which an attempt that was recorded is taken back; NULL otherwise.
        "ALTER TABLE attempts ADD COLUMN refunded_month TEXT",
    ),
    step(46, "attempts: reason of a failure", "ALTER TABLE attempts ADD COLUMN code TEXT"),
    step(47, "attempts: request id", "ALTER TABLE attempts ADD COLUMN request_id TEXT"),
    step(48, "attempts: template", "ALTER TABLE attempts ADD COLUMN template_id TEXT"),
    step(
        49,
        "attempts: host",
        // Of the URL that was rendered, without its path and query.
        "ALTER TABLE attempts ADD COLUMN host TEXT",
    ),
    step(
        50,
        "attempts: a refund takes the attempt back",
        // A trigger, so that a refund and its row are one statement, which has no effect when it is repeated.
        "CREATE TRIGGER attempts_refunded AFTER INSERT ON attempts \
            WHEN new.refunded_month IS NOT NULL \
            BEGIN \
            UPDATE usage SET attempts = attempts - 1 \
            WHERE account_id = new.account_id AND month = new.refunded_month AND attempts > 0; \
            END",
    ),
];
