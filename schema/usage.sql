-- Attempts that count against the quota.
CREATE TABLE usage (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    month TEXT NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    -- Attempt of the last claim and when it ends, for the triggers; NULL if the account has no other limits.
    attempt_id INTEGER,
    ends_at INTEGER,
    -- The last claim of several attempts, for the trigger in claims_ahead.sql: a JSON object with `id`, `granted` and `ends_at`.
    claim_ahead TEXT,
    -- The link of the last claim of one, and the day (UTC), for the trigger in links.sql.
    link_id TEXT,
    link_day TEXT,
    PRIMARY KEY (account_id, month)
) STRICT, WITHOUT ROWID;

-- Makes the place of an attempt and counts its minute: in the transaction of the claim, so that the conditions of the
-- next claim find both.
CREATE TRIGGER usage_claimed AFTER UPDATE OF attempt_id ON usage WHEN new.attempt_id IS NOT NULL
BEGIN
    DELETE FROM running_attempts WHERE account_id = new.account_id AND ends_at <= unixepoch();
    INSERT INTO running_attempts (account_id, attempt_id, ends_at)
    SELECT id, new.attempt_id, new.ends_at FROM accounts
    WHERE id = new.account_id AND concurrency IS NOT NULL
    ON CONFLICT (account_id, attempt_id) DO NOTHING;
    INSERT INTO usage_minutes (account_id, began_at, requests)
    SELECT id, unixepoch(), 1 FROM accounts
    WHERE id = new.account_id AND requests_per_minute IS NOT NULL
    ON CONFLICT (account_id) DO UPDATE SET
        requests = iif(abs(unixepoch() - began_at) < 60, requests + 1, 1),
        began_at = iif(abs(unixepoch() - began_at) < 60, began_at, unixepoch());
END;

-- The first claim of a month.
CREATE TRIGGER usage_began AFTER INSERT ON usage WHEN new.attempt_id IS NOT NULL
BEGIN
    UPDATE usage SET attempt_id = new.attempt_id WHERE account_id = new.account_id AND month = new.month;
END;

-- Of accounts with a limit of requests in a minute. The minute begins with its first request and has 60 seconds of the
-- database's clock.
CREATE TABLE usage_minutes (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    began_at INTEGER NOT NULL,
    requests INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_days (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;

-- Usage by key and template, of the last 30 days.
CREATE TABLE usage_parts (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    -- A key or a link; empty for one that was deleted, or a key of the dashboard.
    key_id TEXT NOT NULL,
    -- Empty for no template.
    template_id TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, key_id, template_id)
) STRICT, WITHOUT ROWID;
