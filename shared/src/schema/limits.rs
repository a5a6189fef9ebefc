//! Limits of an account beside its quota: requests in a minute, and attempts at once.

use super::{Migration, step};

/// Makes the place of an attempt and counts its minute: in the transaction of the claim, so that the conditions of the
/// next claim find both. `$event` is one of the two ends of the claim's upsert. The claim sets `attempt_id` for accounts
/// with limits only.
macro_rules! claimed_trigger {
    ($number:literal, $name:literal, $event:literal) => {
        step(
            $number,
            concat!("usage: limits count a claim, ", $name),
            concat!(
                "CREATE TRIGGER usage_claimed_",
                $name,
                " AFTER ",
                $event,
                " ON usage WHEN new.attempt_id IS NOT NULL BEGIN \
                DELETE FROM running_attempts WHERE account_id = new.account_id AND ends_at <= unixepoch(); \
                INSERT INTO running_attempts (account_id, attempt_id, ends_at) \
                SELECT id, new.attempt_id, new.ends_at FROM accounts \
                WHERE id = new.account_id AND concurrency IS NOT NULL \
                ON CONFLICT (account_id, attempt_id) DO NOTHING; \
                INSERT INTO usage_minutes (account_id, began_at, requests) \
                SELECT id, unixepoch(), 1 FROM accounts \
                WHERE id = new.account_id AND requests_per_minute IS NOT NULL \
                ON CONFLICT (account_id) DO UPDATE SET \
                requests = iif(abs(unixepoch() - began_at) < 60, requests + 1, 1), \
                began_at = iif(abs(unixepoch() - began_at) < 60, began_at, unixepoch()); \
                END"
            ),
        )
    };
}

pub(super) const STEPS: &[Migration] = &[
    step(
        62,
        "accounts: limit of requests in a minute",
        "ALTER TABLE accounts ADD COLUMN requests_per_minute INTEGER CHECK (requests_per_minute > 0)",
    ),
    step(
        63,
        "accounts: limit of attempts at once",
        "ALTER TABLE accounts ADD COLUMN concurrency INTEGER CHECK (concurrency > 0)",
    ),
    // Of the last claim, for the triggers below. NULL if the account has no limits.
    step(64, "usage: attempt of the last claim", "ALTER TABLE usage ADD COLUMN attempt_id INTEGER"),
    step(65, "usage: end of the attempt of the last claim", "ALTER TABLE usage ADD COLUMN ends_at INTEGER"),
    step(
        66,
        "attempts that run",
        // Of accounts with a limit of them. A row is deleted when its attempt ends. One whose edge was killed counts
        // until `ends_at`, and is deleted by the account's next claim.
        "CREATE TABLE running_attempts (\
            account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, \
            attempt_id INTEGER NOT NULL, \
            ends_at INTEGER NOT NULL, \
            PRIMARY KEY (account_id, attempt_id)) STRICT, WITHOUT ROWID",
    ),
    step(
        67,
        "usage by account in its current minute",
        // The minute begins with its first request, at `began_at`, and has 60 seconds of the database's clock.
        "CREATE TABLE usage_minutes (\
            account_id TEXT PRIMARY KEY REFERENCES accounts(id) ON DELETE CASCADE, \
            began_at INTEGER NOT NULL, \
            requests INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    ),
    claimed_trigger!(68, "first", "INSERT"),
    claimed_trigger!(69, "again", "UPDATE OF attempt_id"),
    step(
        70,
        "attempts: one that has ended does not run",
        "CREATE TRIGGER attempts_ended AFTER INSERT ON attempts \
            BEGIN \
            DELETE FROM running_attempts WHERE account_id = new.account_id AND attempt_id = new.id; \
            END",
    ),
];
