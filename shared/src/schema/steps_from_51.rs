//! Revisions and editors of templates; keys that expire and are rolled; attempts by key and template.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    step(
        51,
        "templates: revision",
        // A save of another revision than the stored one is a conflict of two editors.
        "ALTER TABLE templates ADD COLUMN revision INTEGER NOT NULL DEFAULT 1",
    ),
    // An e-mail address or `command line`; NULL for what was saved before this column existed.
    step(52, "templates: last editor", "ALTER TABLE templates ADD COLUMN saved_by TEXT"),
    step(53, "template versions: editor", "ALTER TABLE template_versions ADD COLUMN saved_by TEXT"),
    step(54, "template versions: the trigger without the editor", "DROP TRIGGER template_versions_kept"),
    step(
        55,
        "template versions: kept by every save, with the editor",
        "CREATE TRIGGER template_versions_kept AFTER UPDATE OF name, packed_html ON templates \
            WHEN old.packed_html IS NOT new.packed_html OR old.name IS NOT new.name \
            BEGIN \
            INSERT INTO template_versions \
            (template_id, number, account_id, name, packed_html, placeholders, saved_at, saved_by) \
            SELECT old.id, 1 + coalesce((SELECT max(number) FROM template_versions \
            WHERE template_id = old.id), 0), old.account_id, old.name, old.packed_html, \
            old.placeholders, old.updated_at, old.saved_by; \
            END",
    ),
    // Keys that the dashboard makes for one render. Until now only these expired. A column `temporary` would be read as
    // the keyword by the SQL parser of the libSQL client.
    step(
        56,
        "api keys: temporary ones",
        "ALTER TABLE api_keys ADD COLUMN is_temporary INTEGER NOT NULL DEFAULT 0",
    ),
    step(
        57,
        "api keys: those that expire are temporary",
        "UPDATE api_keys SET is_temporary = 1 WHERE expires_at IS NOT NULL",
    ),
    step(
        58,
        "api keys: a new one lets another expire",
        // A trigger, so that rolling a key is one statement. The other key may expire earlier already.
        "CREATE TRIGGER api_keys_rolled AFTER INSERT ON api_keys \
            WHEN json_extract(new.last_change, '$.rolls') IS NOT NULL \
            BEGIN \
            UPDATE api_keys SET expires_at = min(coalesce(expires_at, 9223372036854775807), \
            json_extract(new.last_change, '$.rolled_until')) \
            WHERE id = json_extract(new.last_change, '$.rolls') AND account_id = new.account_id; \
            END",
    ),
    step(
        59,
        "usage by key and template",
        // An empty `key_id` is a deleted key or one of the dashboard's own, an empty `template_id` no template.
        "CREATE TABLE usage_parts (\
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            day TEXT NOT NULL, \
            key_id TEXT NOT NULL, \
            template_id TEXT NOT NULL, \
            attempts INTEGER NOT NULL, \
            failures INTEGER NOT NULL, \
            PRIMARY KEY (account_id, day, key_id, template_id)) STRICT, WITHOUT ROWID",
    ),
    step(
        60,
        "usage by key and template: of the attempts so far",
        "INSERT INTO usage_parts (account_id, day, key_id, template_id, attempts, failures) \
            SELECT a.account_id, date(at, 'unixepoch'), coalesce(k.id, ''), coalesce(a.template_id, ''), \
            sum(counted), sum(counted * (status >= 400)) \
            FROM attempts a LEFT JOIN api_keys k ON k.id = key_id AND NOT is_temporary \
            WHERE counted GROUP BY 1, 2, 3, 4",
    ),
    step(
        61,
        "usage by key and template: of each attempt",
        // As old as the attempts that are kept.
        "CREATE TRIGGER attempts_counted AFTER INSERT ON attempts WHEN new.counted \
            BEGIN \
            INSERT INTO usage_parts (account_id, day, key_id, template_id, attempts, failures) \
            VALUES (new.account_id, date(new.at, 'unixepoch'), \
            coalesce((SELECT id FROM api_keys WHERE id = new.key_id AND NOT is_temporary), ''), \
            coalesce(new.template_id, ''), 1, new.status >= 400) \
            ON CONFLICT (account_id, day, key_id, template_id) DO UPDATE SET attempts = attempts + 1, \
            failures = failures + excluded.failures; \
            DELETE FROM usage_parts WHERE account_id = new.account_id AND day < date(new.at - 2592000, 'unixepoch'); \
            END",
    ),
];
