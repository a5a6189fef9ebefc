CREATE TABLE invites (
    hash TEXT PRIMARY KEY,
    id TEXT UNIQUE,
    email TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id) ON DELETE CASCADE,
    is_owner INTEGER NOT NULL DEFAULT 1,
    operator INTEGER NOT NULL,
    -- Owners invite new users only: a link for another user would set that user's password.
    only_new INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    -- A revoked invite has `used_at` as well, so that it is not an open one.
    revoked_at INTEGER,
    last_change TEXT
) STRICT;

CREATE UNIQUE INDEX invites_open ON invites (email) WHERE used_at IS NULL;
CREATE INDEX invites_by_account ON invites (account_id) WHERE used_at IS NULL;

CREATE TRIGGER invites_created AFTER INSERT ON invites WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.email);
END;

CREATE TRIGGER invites_changed AFTER UPDATE OF last_change ON invites WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.email);
END;
