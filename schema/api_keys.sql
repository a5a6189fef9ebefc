-- What attempts are recorded for: API keys, and links.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- `temporary` is a key of the dashboard, for one render.
    kind TEXT NOT NULL DEFAULT 'key' CHECK (kind IN ('key', 'temporary', 'link')),
    name TEXT NOT NULL,
    -- The first characters of a key, for display; those of a link's id.
    prefix TEXT NOT NULL,
    -- SHA-256 of the key in lower-case hex. That of a link is its id, which is public: no text has it as its SHA-256, so it is no
    -- key.
    hash TEXT NOT NULL UNIQUE,
    -- The only template that it may render; NULL if it may render everything.
    template_id TEXT,
    -- Of a link: extensions with commas between them, the seconds for which a file may be cached, and the limit of attempts in a day (UTC);
    -- NULL is no limit.
    formats TEXT,
    max_age INTEGER,
    daily_limit INTEGER CHECK (daily_limit > 0),
    -- Of a link: the secret that its addresses are signed with, as it is, because a hash could not verify them; and the one before,
    -- until a time.
    secret TEXT,
    old_secret TEXT,
    old_secret_until INTEGER,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    disabled_at INTEGER,
    last_change TEXT,
    CHECK (iif(kind = 'link',
        hash = id AND template_id IS NOT NULL AND formats IS NOT NULL AND max_age IS NOT NULL AND secret IS NOT NULL,
        length(hash) = 64 AND coalesce(formats, max_age, daily_limit, secret, old_secret) IS NULL))
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
