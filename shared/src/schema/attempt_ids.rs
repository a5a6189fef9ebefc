//! Ids that tell attempts apart, beside the numbers of their rows.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    step(102, "attempts: id of the attempt", "ALTER TABLE attempts ADD COLUMN attempt_id INTEGER"),
    step(103, "attempts: the index by time alone", "DROP INDEX attempts_by_time"),
    step(
        104,
        "attempts by time and id",
        // A row that exists is not inserted again. The time is needed as well: ids have 63 random bits.
        "CREATE UNIQUE INDEX attempts_by_time ON attempts (at, attempt_id)",
    ),
    step(105, "attempts: the trigger that ends one by its row", "DROP TRIGGER attempts_ended"),
    step(
        106,
        "attempts: one that has ended does not run any more",
        "CREATE TRIGGER attempts_ended AFTER INSERT ON attempts \
            BEGIN \
            DELETE FROM running_attempts WHERE account_id = new.account_id AND attempt_id = new.attempt_id; \
            END",
    ),
];
