//! Owners and members of accounts, the account that an operator works in, and invites that are revoked.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    // Until now all users of an account could do everything.
    step(
        84,
        "users: owners of their account",
        "ALTER TABLE users ADD COLUMN is_owner INTEGER NOT NULL DEFAULT 1",
    ),
    step(
        85,
        "users: the account that an operator works in",
        // NULL is the operator's own account, if there is one.
        "ALTER TABLE users ADD COLUMN visited_account_id TEXT REFERENCES accounts(id) ON DELETE SET NULL",
    ),
    step(86, "invites: owners", "ALTER TABLE invites ADD COLUMN is_owner INTEGER NOT NULL DEFAULT 1"),
    step(87, "invites: id", "ALTER TABLE invites ADD COLUMN id TEXT"),
    step(
        88,
        "invites: ids of the invites so far",
        "UPDATE invites SET id = 'inv_' || lower(hex(randomblob(10)))",
    ),
    step(89, "invites by id", "CREATE UNIQUE INDEX invites_by_id ON invites (id)"),
    step(
        90,
        "invites by account",
        "CREATE INDEX invites_by_account ON invites (account_id) WHERE used_at IS NULL",
    ),
    // A revoked invite has `used_at` as well, so that it is not an open one.
    step(91, "invites: revoked ones", "ALTER TABLE invites ADD COLUMN revoked_at INTEGER"),
    // Owners invite new users only: a link for another user would set that user's password.
    step(
        92,
        "invites: for new users only",
        "ALTER TABLE invites ADD COLUMN only_new INTEGER NOT NULL DEFAULT 0",
    ),
];
