-- Customers. Times in all tables are whole seconds since 1970 (UTC), days `YYYY-MM-DD` and months `YYYY-MM`.
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    -- Without regard to the case of ASCII letters.
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    -- Attempts in a month; NULL is no limit, as in the two below.
    quota INTEGER CHECK (quota >= 0),
    requests_per_minute INTEGER CHECK (requests_per_minute > 0),
    -- Attempts at once.
    concurrency INTEGER CHECK (concurrency > 0),
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    -- In this and other tables, the last change of the row: a JSON object with `at`, `actor`, `action` and, where they
    -- apply, `account` and `subject`. A statement that changes a row sets the column, and a trigger copies it to the
    -- audit log in the same transaction.
    last_change TEXT
) STRICT;

CREATE TRIGGER accounts_created AFTER INSERT ON accounts WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.name);
END;

-- Foreign keys delete what an account has, and leave an operator without an account.
CREATE TRIGGER accounts_changed AFTER UPDATE OF last_change ON accounts WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.name);
    DELETE FROM users WHERE account_id = new.id AND NOT operator AND new.last_change ->> 'deletes';
    DELETE FROM accounts WHERE id = new.id AND new.last_change ->> 'deletes';
END;
