//! The database schema as numbered migrations.
//!
//! Invariant: a step is one statement, because a libSQL client ignores what follows the first one.
//! A released step is never changed. `schema_migrations` records a step in the transaction that
//! applies it.
//!
//! Times are whole seconds since 1970 (UTC); a month is `YYYY-MM` (UTC).

use serde::Serialize;

#[macro_use]
mod last_change;
mod attempt_ids;
mod limits;
mod members;
mod requests;
mod retention;
mod steps_1_to_50;
mod steps_from_51;

/// One step; serialised without its statement.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Migration {
    /// Position in the order, from 1, without gaps.
    pub number: u32,
    /// Short description, printed by `platen migrate`.
    pub name: &'static str,
    /// One SQL statement.
    #[serde(skip)]
    pub sql: &'static str,
}

/// Creates the table that records applied steps, if it does not exist.
pub const RECORD_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (\
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";

const fn step(number: u32, name: &'static str, sql: &'static str) -> Migration {
    Migration { number, name, sql }
}

const LISTS: [&[Migration]; 7] = [
    steps_1_to_50::STEPS,
    steps_from_51::STEPS,
    limits::STEPS,
    requests::STEPS,
    members::STEPS,
    retention::STEPS,
    attempt_ids::STEPS,
];

/// Every step, in order.
pub const MIGRATIONS: &[Migration] = &concatenated::<{ number_of_steps() }>();

const fn number_of_steps() -> usize {
    let (mut list, mut steps) = (0, 0);
    while list < LISTS.len() {
        steps += LISTS[list].len();
        list += 1;
    }
    steps
}

const fn concatenated<const N: usize>() -> [Migration; N] {
    let mut steps = [LISTS[0][0]; N];
    let (mut list, mut taken, mut index) = (0, 0, 0);
    while index < N {
        if index - taken == LISTS[list].len() {
            taken = index;
            list += 1;
        }
        steps[index] = LISTS[list][index - taken];
        index += 1;
    }
    steps
}

#[cfg(test)]
mod tests;
