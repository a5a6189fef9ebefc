//! Requests that are refused before an attempt is recorded; times of the farm; indexes of the list of requests.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    // 1 for a request that was refused before an attempt was recorded, because of the request itself or its quota.
    step(71, "attempts: rejected", "ALTER TABLE attempts ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0"),
    // The field of the request that is the cause of a failure.
    step(72, "attempts: field", "ALTER TABLE attempts ADD COLUMN field TEXT"),
    // Milliseconds for which the job waited for a slot of the farm, and then had it; NULL if no farm has said so.
    step(73, "attempts: time in the queue", "ALTER TABLE attempts ADD COLUMN queued_ms INTEGER"),
    step(74, "attempts: time of the render", "ALTER TABLE attempts ADD COLUMN render_ms INTEGER"),
    step(
        75,
        "attempts that were rejected by account",
        "CREATE INDEX attempts_rejected ON attempts (account_id, at) WHERE rejected = 1",
    ),
    step(
        76,
        "attempts: at most 30 rejected ones a minute",
        // Rejected requests cost no quota, so their number is not limited otherwise.
        "CREATE TRIGGER attempts_rejected_limited BEFORE INSERT ON attempts \
            WHEN new.rejected = 1 AND (SELECT count(*) FROM attempts WHERE account_id = new.account_id \
            AND rejected = 1 AND at >= new.at - new.at % 60 AND at < new.at - new.at % 60 + 60) >= 30 \
            BEGIN \
            SELECT RAISE(IGNORE); \
            END",
    ),
    step(
        77,
        "attempts: the newest 5,000 rejected ones are kept",
        "CREATE TRIGGER attempts_rejected_kept AFTER INSERT ON attempts WHEN new.rejected = 1 \
            BEGIN \
            DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE account_id = new.account_id \
            AND rejected = 1 ORDER BY at DESC LIMIT 100 OFFSET 5000); \
            END",
    ),
    step(78, "attempts: the trigger that counts every row's day", "DROP TRIGGER attempts_logged"),
    step(
        79,
        "attempts: what follows from one, if it counts",
        "CREATE TRIGGER attempts_logged AFTER INSERT ON attempts \
            BEGIN \
            UPDATE api_keys SET last_used_at = new.at WHERE id = new.key_id; \
            INSERT INTO usage_days (account_id, day, attempts, failures) \
            SELECT new.account_id, date(new.at, 'unixepoch'), 1, new.status >= 400 WHERE new.counted \
            ON CONFLICT (account_id, day) DO UPDATE SET attempts = attempts + excluded.attempts, \
            failures = failures + excluded.failures; \
            END",
    ),
    step(
        80,
        "attempts by status",
        // Without successful ones: most attempts, which would fill it.
        "CREATE INDEX attempts_by_status ON attempts (account_id, status, at) WHERE status >= 400",
    ),
    step(81, "attempts by key", "CREATE INDEX attempts_by_key ON attempts (account_id, key_id, at)"),
    step(
        82,
        "attempts by template",
        "CREATE INDEX attempts_by_template ON attempts (account_id, template_id, at) WHERE template_id IS NOT NULL",
    ),
    step(
        83,
        "attempts by request id",
        "CREATE INDEX attempts_by_request_id ON attempts (account_id, request_id)",
    ),
];
