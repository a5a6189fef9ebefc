-- Of accounts with a limit of attempts at once. A row is deleted when its attempt ends. One whose edge was killed counts
-- until `ends_at`, and is deleted by the account's next claim.
CREATE TABLE running_attempts (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    attempt_id INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, attempt_id)
) STRICT, WITHOUT ROWID;
