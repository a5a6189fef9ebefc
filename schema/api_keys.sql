CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    -- The only template that it may render; NULL if it may render everything.
    template_id TEXT,
    -- The dashboard's own, for one render. A column `temporary` would be read as the keyword by the SQL parser of the
    -- libSQL client.
    is_temporary INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    disabled_at INTEGER,
    last_change TEXT
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id);

CREATE TRIGGER api_keys_created AFTER INSERT ON api_keys WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.name);
END;

-- A trigger, so that rolling a key is one statement. The other key may expire earlier already.
CREATE TRIGGER api_keys_rolled AFTER INSERT ON api_keys WHEN new.last_change ->> 'rolls' IS NOT NULL
BEGIN
    UPDATE api_keys
    SET expires_at = min(coalesce(expires_at, 9223372036854775807), new.last_change ->> 'rolled_until')
    WHERE id = new.last_change ->> 'rolls' AND account_id = new.account_id;
END;

CREATE TRIGGER api_keys_changed AFTER UPDATE OF last_change ON api_keys WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.name);
    DELETE FROM api_keys WHERE id = new.id AND new.last_change ->> 'deletes';
END;
