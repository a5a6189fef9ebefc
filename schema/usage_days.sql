CREATE TABLE usage_days (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
