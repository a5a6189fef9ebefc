-- Of accounts with a limit of requests in a minute. The minute begins with its first request and has 60 seconds of the
-- database's clock.
CREATE TABLE usage_minutes (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    began_at INTEGER NOT NULL,
    requests INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
